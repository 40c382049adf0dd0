/* config/foreign_words: each word of another program leads to one that there is here. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "config/foreign_words.h"
#include "config/option.h"
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

TEST(words, each_leads_to_a_word_of_ours_and_is_none_itself)
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

TEST(words, no_word_is_there_twice)
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

TEST(words, a_word_is_found_in_any_case_and_as_a_whole)
{
    ck_assert_str_eq(hint_for("balance", "LeastConn", 9), "here it is 'least_connections'");
    ck_assert_str_eq(hint_for(FOREIGN_WORDS_SERVER, "maxconn=5", 7),
                     "here it is 'max_connections=N'");
    ck_assert_str_eq(hint_for(FOREIGN_WORDS_SECTION, "backend", 7), "here it is [upstream NAME]");
    ck_assert_ptr_null(hint_for("balance", "leastcon", 8));
    ck_assert_ptr_null(hint_for("balance", "leastconns", 10));
    ck_assert_ptr_null(hint_for("check", "leastconn", 9));
}
