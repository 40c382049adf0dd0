/* ini/foreign_words: each word of another program leads to one that there is here. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "option/option.h"
#include "ini/foreign_lines.h"
#include "ini/foreign_words.h"
#include "support/suite.h"

static size_t n_words;
static const struct foreign_word *words;

/* The kind of section of that name, or OPTION_SECTIONS. */
static unsigned kind_of(const char *name)
{
    unsigned k = 0;

    while (k < OPTION_SECTIONS && strcmp(option_section_name(k), name) != 0)
        k++;
    return k;
}

static bool is_word_of(const struct option *o, const char *word)
{
    for (const struct option_word *w = o->words; w != NULL && w->word != NULL; w++)
        if (strcmp(w->word, word) == 0)
            return true;
    return false;
}

static const struct option *find_anywhere(const char *key)
{
    const struct option *o = NULL;

    for (unsigned k = 0; k < OPTION_SECTIONS && o == NULL; k++)
        o = option_find(k, key);
    return o;
}

static bool is_title(const char *text)
{
    for (unsigned k = 0; k < OPTION_SECTIONS; k++)
        if (strcmp(option_section_title(k), text) == 0)
            return true;
    return false;
}

static void setup(void)
{
    words = foreign_words_table(&n_words);
}

GROUP(words, setup, NULL);

TEST(words, each_foreign_word_leads_to_an_option_and_is_none_itself)
{
    const char *server_words = option_find(OPTION_UPSTREAM, "server.ID")->allowed;

    for (size_t i = 0; i < n_words; i++) {
        const struct foreign_word *w = &words[i];
        unsigned kind = kind_of(w->where);
        char here[64];
        bool known;

        snprintf(here, sizeof(here), "%.*s", (int)strcspn(w->here, " =,"), w->here);
        if (strcmp(w->where, FOREIGN_WORDS_SECTION) == 0)
            known = is_title(w->here) && kind_of(w->word) == OPTION_SECTIONS;
        else if (strcmp(w->where, FOREIGN_WORDS_SERVER) == 0)
            known =
                strstr(server_words, here) != NULL || option_find(OPTION_UPSTREAM, here) != NULL;
        else if (strcmp(w->where, FOREIGN_WORDS_SYSLOG) == 0)
            known = strstr(option_find(OPTION_ACCESS_LOG, "target")->allowed, here) != NULL ||
                    option_find(OPTION_ACCESS_LOG, here) != NULL;
        else if (kind < OPTION_SECTIONS)
            known = (option_find(kind, here) != NULL || strstr(server_words, here) != NULL ||
                     (strstr(w->here, " in [upstream NAME]") != NULL &&
                      option_find(OPTION_UPSTREAM, here) != NULL) ||
                     (strstr(w->here, " in [tls NAME]") != NULL &&
                      option_find(OPTION_TLS, here) != NULL)) &&
                    option_find(kind, w->word) == NULL;
        else
            known = is_word_of(find_anywhere(w->where), here) &&
                    !is_word_of(find_anywhere(w->where), w->word);
        ck_assert_msg(known, "%s: %s is %s", w->where, w->word, w->here);
    }
}

/* The hint for a word; NULL: none. */
static const char *hint_for(const char *where, const char *word, size_t len)
{
    static struct foreign_words_hint hint;

    return foreign_words_hint(&hint, where, word, len) ? hint.text : NULL;
}

TEST(words, no_foreign_word_is_listed_twice)
{
    for (size_t i = 0; i < n_words; i++) {
        const struct foreign_word *w = &words[i];
        const char *hint = hint_for(w->where, w->word, strlen(w->word));
        size_t quote = w->here[0] != '[';

        ck_assert_ptr_nonnull(hint);
        ck_assert_int_eq(strncmp(hint, "here it is ", 11), 0);
        ck_assert_int_eq(strncmp(hint + 11 + quote, w->here, strlen(w->here)), 0);
        ck_assert_uint_eq(strlen(hint), 11 + 2 * quote + strlen(w->here));
    }
}

/* Is ${text}, `key` or `key = value`, an option of the section with ${title}? */
static bool is_option_of(const char *title, size_t title_len, const char *text)
{
    char key[64], value[64] = "";
    unsigned kind = 0;

    ck_assert_int_gt(sscanf(text, "%63[^ '=] = %63[^']", key, value), 0);
    while (kind < OPTION_SECTIONS && (strlen(option_section_title(kind)) != title_len ||
                                      strncmp(option_section_title(kind), title, title_len) != 0))
        kind++;
    if (kind == OPTION_SECTIONS)
        return false;
    if (strncmp(text, "max_connections=N'", 18) == 0)
        return kind == OPTION_UPSTREAM;
    if (!option_find(kind, key))
        return false;
    return value[0] == '\0' || strcmp(value, "ADDRESS") == 0 ||
           is_word_of(option_find(kind, key), value);
}

/* Each 'option' of a hint is followed by the [section] that has it. */
TEST(words, each_option_in_a_hint_is_in_the_section_that_it_names)
{
    size_t n;
    const struct foreign_line *lines = foreign_lines_table(&n);

    for (size_t i = 0; i < n; i++) {
        const char *at = lines[i].hint;

        while ((at = strchr(at, '\''))) {
            const char *end = strchr(at + 1, '\''), *title = strchr(end, '[');

            if (strncmp(at, "'include = PATH'", 16) == 0)
                break;
            ck_assert_msg(title && is_option_of(title, strcspn(title, "]") + 1, at + 1), "%s: %s",
                          lines[i].phrase, lines[i].hint);
            at = end + 1;
        }
    }
}

TEST(words, no_phrase_is_listed_twice)
{
    size_t n;
    const struct foreign_line *lines = foreign_lines_table(&n);

    for (size_t i = 0; i < n; i++) {
        unsigned words_of_it;

        ck_assert_ptr_eq(foreign_lines_find(lines[i].phrase, &words_of_it), lines[i].hint);
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(lines[i].phrase, lines[j].phrase);
    }
}

/* Lines as they stand in the files of HAProxy and nginx, and the start of their hints. */
static const struct {
    const char *section, *line, *hint;
} foreign[] = {
    {"", "global", "here it is [reactord]"},
    {"", "  defaults", "here it is [defaults listen]"},
    {"boss", "maxconn 20000", "here it is 'max_connections' in [reactord] and in [listen NAME]"},
    {"listen a", "maxconn 20000", "here it is 'max_connections'"},
    {"upstream b", "maxconn 20000", "here it is 'max_connections=N after the address"},
    {"upstream b", "log 192.0.2.1 local0", "here it is 'log' in [reactord]"},
    {"upstream b", "log global", "here it is 'access_log' in [listen NAME]"},
    {"upstream b", "option redispatch", "it is always so: 'retries' in [upstream NAME]"},
    {"upstream b", "option httpchk GET /", "here they are 'check = http', 'check_http'"},
    {"upstream b", "option  ldap-check", "here it is 'check = ldap'"},
    {"upstream b", "tcp-check expect rstring x", "here they are 'check = steps'"},
    {"upstream b", "external-check command /x", "there is none"},
    {"upstream b", "option ssl-hello-chk", "here they are 'check = tls'"},
    {"listen a", "timeout\tcheck 2s", "here it is 'check_timeout' in [upstream NAME]"},
    {"listen a", "timeout connect 2s", "here it is 'connect_timeout in [upstream NAME]'"},
    {"listen a", "bind :443", "here it is 'address'"},
    {"upstream b", "bind :443", "here it is 'address' in [listen NAME]"},
    {"listen a", "listen mysql", "here it is 'address' in [listen NAME]; a section of HAPro"},
    {"upstream b", "server {", "here it is [listen NAME]"},
    {"upstream b", "server db 192.0.2.1:3306 check", "here it is 'server.ID = ADDRESS'"},
    {"", "ssl_preread  on;", "here it is 'route.ID' in [listen NAME]"},
    {"listen a", "health_check;", "here it is 'check = tcp' in [upstream NAME]"},
    {"listen a", "proxy_protocol on;", "here it is 'send_proxy = v1' in [upstream NAME]"},
    {"listen a", "}", "leave it out"},
};

TEST_EACH(words, a_line_gets_the_hint_of_its_longest_phrase, ARRAY_LEN(foreign))
{
    struct foreign_words_hint words_hint;
    const char *hint = foreign_lines_hint(&words_hint, foreign[_i].section, foreign[_i].line);

    ck_assert_msg(hint && strncmp(hint, foreign[_i].hint, strlen(foreign[_i].hint)) == 0, "%s: %s",
                  foreign[_i].line, hint ? hint : "no hint");
}

TEST(words, line_of_no_other_program_has_no_hint)
{
    struct foreign_words_hint hint;

    ck_assert_ptr_null(foreign_lines_hint(&hint, "listen a", "word"));
    ck_assert_ptr_null(foreign_lines_hint(&hint, "listen a", ""));
    ck_assert_ptr_null(foreign_lines_hint(&hint, "upstream a", "option"));
    ck_assert_ptr_null(foreign_lines_hint(&hint, "", "optional redispatch"));
    ck_assert(foreign_lines_is_nginx("some_directive on;"));
    ck_assert(!foreign_lines_is_nginx("some_directive on"));
    ck_assert(!foreign_lines_is_nginx(""));
}

TEST(words, word_is_matched_whole_and_in_any_case)
{
    ck_assert_str_eq(hint_for("balance", "LeastConn", 9), "here it is 'least_connections'");
    ck_assert_str_eq(hint_for(FOREIGN_WORDS_SERVER, "maxconn=5", 7),
                     "here it is 'max_connections=N'");
    ck_assert_str_eq(hint_for(FOREIGN_WORDS_SECTION, "backend", 7), "here it is [upstream NAME]");
    ck_assert_ptr_null(hint_for("balance", "leastcon", 8));
    ck_assert_ptr_null(hint_for("balance", "leastconns", 10));
    ck_assert_ptr_null(hint_for("check", "leastconn", 9));
}
