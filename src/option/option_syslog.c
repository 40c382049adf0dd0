#include "option/option_syslog.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/parse.h"
#include "option/option_kind.h"
#include "option/option_network.h"
#include "ini/diagnostics.h"
#include "ini/foreign_words.h"
#include "stats/syslog_conf.h"

#define BLANKS " \t"

#define SYSLOG_PORT 514 /* RFC 5426, section 3.3 */

/* The largest message that rsyslog takes by default. */
#define UDP_MESSAGE_BYTES 8192

#define TEXT_BYTES 1024

/* Source: RFC 5424, section 6.2.1 (tables 1 and 2); the places are the numbers. */
static const char *const facilities[] = {
    "kern",   "user",   "mail",     "daemon", "auth",   "syslog", "lpr",    "news",
    "uucp",   "cron",   "authpriv", "ftp",    "ntp",    "audit",  "alert",  "clock",
    "local0", "local1", "local2",   "local3", "local4", "local5", "local6", "local7"};
static const char *const severities[] = {"emerg",   "alert",  "crit", "error",
                                         "warning", "notice", "info", "debug"};
static const char *const formats[] = {[SYSLOG_RFC3164] = "rfc3164", [SYSLOG_RFC5424] = "rfc5424"};

#define DAEMON_FACILITY 3

static int option_syslog_find(const char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0)
            return (int)i;
    return -1;
}

/* Find the number of ${text}; -EINVAL: refused, with the most similar of ${list}. */
static int option_syslog_number_of(struct option_value *v, const char *const *list, size_t n,
                                   const char *key, const char *text)
{
    struct diagnostics_suggestion near;
    int found = option_syslog_find(list, n, text);

    if (found >= 0)
        return found;
    diagnostics_suggest(&near, text);
    for (size_t i = 0; i < n; i++)
        diagnostics_offer(&near, list[i]);
    if (near.best)
        return option_refuse(v, "there is no %s %s; did you mean '%s'?", key, QUOTE_TEXT(text),
                             near.best);
    return option_refuse(v, "there is no %s %s; they are %s to %s", key, QUOTE_TEXT(text), list[0],
                         list[n - 1]);
}

static int option_syslog_set_facility(struct option_value *v, struct syslog_conf *out,
                                      const char *text)
{
    int n = option_syslog_number_of(v, facilities, ARRAY_LEN(facilities), "facility", text);

    if (n < 0)
        return n;
    out->facility = (unsigned)n;
    return 0;
}

static int option_syslog_set_severity(struct option_value *v, struct syslog_conf *out,
                                      const char *text)
{
    int n = option_syslog_number_of(v, severities, ARRAY_LEN(severities), "severity", text);

    if (n < 0)
        return n;
    out->severity = n;
    return 0;
}

static int option_syslog_set_format(struct option_value *v, struct syslog_conf *out,
                                    const char *text)
{
    int n = option_syslog_find(formats, ARRAY_LEN(formats), text);

    if (n < 0)
        return option_refuse(v,
                             "format=%s is neither rfc3164 nor rfc5424; the text of a line is "
                             "another option",
                             QUOTE_TEXT(text));
    out->protocol = (enum syslog_protocol)n;
    return 0;
}

/* Are all bytes of ${text} letters, digits or in ${others}, and their number 1 to ${max}? */
static bool option_syslog_is_word(const char *text, const char *others, size_t max)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(others, text[i]))
            return false;
    return len >= 1 && len <= max;
}

static int option_syslog_set_tag(struct option_value *v, struct syslog_conf *out, const char *text)
{
    if (!option_syslog_is_word(text, "_.-/", SYSLOG_CONF_TAG_BYTES))
        return option_refuse(v, "%s is not a tag of 1 to %d letters, digits, '_', '.', '-' and '/'",
                             QUOTE_TEXT(text), SYSLOG_CONF_TAG_BYTES);
    strcpy(out->tag, text);
    return 0;
}

static int option_syslog_set_host(struct option_value *v, struct syslog_conf *out, const char *text)
{
    if (!option_syslog_is_word(text, "_.-:", SYSLOG_CONF_HOST_BYTES))
        return option_refuse(v, "%s is neither off nor a host name", QUOTE_TEXT(text));
    strcpy(out->host, strcmp(text, "off") == 0 ? "" : text);
    return 0;
}

static int option_syslog_set_length(struct option_value *v, struct syslog_conf *out,
                                    const char *text)
{
    uint64_t bytes;

    if (parse_uint(&bytes, text, SYSLOG_CONF_MAX_BYTES) < 0 || bytes < SYSLOG_CONF_MIN_BYTES)
        return option_refuse(v, "%s is not a length from %d to %d", QUOTE_TEXT(text),
                             SYSLOG_CONF_MIN_BYTES, SYSLOG_CONF_MAX_BYTES);
    out->max_bytes = (unsigned)bytes;
    return 0;
}

static const struct {
    const char *name;
    const char *example;
    int (*set)(struct option_value *v, struct syslog_conf *out, const char *text);
    bool is_of_syslog; /* not of the journal */
} words[] = {
    {"facility", "local0", option_syslog_set_facility, false},
    {"severity", "info", option_syslog_set_severity, false},
    {"tag", "reactord", option_syslog_set_tag, false},
    {"format", "rfc5424", option_syslog_set_format, true},
    {"host", "off", option_syslog_set_host, true},
    {"length", "8192", option_syslog_set_length, true},
};

static int option_syslog_refuse_word(struct option_value *v, const char *word)
{
    struct foreign_words_hint hint;
    struct diagnostics_suggestion near;
    char name[SUGGEST_WORD_BYTES];

    v->foreign = true;
    if (option_syslog_find(facilities, ARRAY_LEN(facilities), word) >= 0)
        return option_refuse(v, "%s is not known; here it is 'facility=%s'", QUOTE_TEXT(word),
                             word);
    if (foreign_words_hint(&hint, FOREIGN_WORDS_SYSLOG, word, strcspn(word, "=")))
        return option_refuse(v, "%s is not known; %s", QUOTE_TEXT(word), hint.text);
    v->foreign = false;
    if (option_syslog_find(severities, ARRAY_LEN(severities), word) >= 0)
        return option_refuse(v, "%s is not known; did you mean 'severity=%s'?", QUOTE_TEXT(word),
                             word);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    diagnostics_suggest(&near, name);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        diagnostics_offer(&near, words[i].name);
    return near.best ? option_refuse(v, "%s is not known; did you mean '%s='?", QUOTE_TEXT(word),
                                     near.best)
                     : option_refuse(v, "%s is not known", QUOTE_TEXT(word));
}

/* Set ${word}; ${given} has a bit for each word given before. */
static int option_syslog_set_word(struct option_value *v, struct syslog_conf *out, const char *word,
                                  unsigned *given)
{
    size_t len = strcspn(word, "="), i;

    for (i = 0; i < ARRAY_LEN(words); i++)
        if (strlen(words[i].name) == len && strncmp(words[i].name, word, len) == 0)
            break;
    if (i == ARRAY_LEN(words))
        return option_syslog_refuse_word(v, word);
    if (word[len] == '\0' || word[len + 1] == '\0')
        return option_refuse(v, "'%s' has no value, as in %s=%s without blanks", words[i].name,
                             words[i].name, words[i].example);
    if (*given & 1u << i)
        return option_refuse(v, "'%s' is given twice", words[i].name);
    if (words[i].is_of_syslog && out->protocol == SYSLOG_JOURNAL)
        return option_refuse(v, "the journal takes no %s=", words[i].name);
    *given |= 1u << i;
    return words[i].set(v, out, word + len + 1);
}

static int option_syslog_set_address(struct option_value *v, struct syslog_conf *out,
                                     const char *word)
{
    struct address found[2];
    int rc = address_parse_host(found, word);

    if (rc == 0) {
        address_set_port(found, SYSLOG_PORT);
        rc = 1;
    } else {
        rc = address_parse(found, ARRAY_LEN(found), word);
    }
    if (rc == -ENOENT)
        return option_refuse(v, "%s is a host name, and a log needs a numeric address",
                             QUOTE_TEXT(word));
    if (rc < 0)
        return option_network_refuse_address(v, rc, word, false);
    if (rc > 1)
        return option_refuse(v, "%s is for listening, a log needs one address", QUOTE_TEXT(word));
    out->address = found[0];
    if (address_is_unix(&out->address))
        return 0;
    out->max_bytes = UDP_MESSAGE_BYTES;
    if (gethostname(out->host, sizeof(out->host)) < 0 || out->host[sizeof(out->host) - 1] != '\0')
        out->host[0] = '\0';
    return 0;
}

/* A word stands alone or has a value; all else is the address. */
static bool option_syslog_is_address(const char *word)
{
    return word && (strchr("/@[*", word[0]) || (!strchr(word, '=') && strpbrk(word, ".:")));
}

/* Does ${word} begin ${text}, with a blank or nothing behind it? */
static bool option_syslog_begins(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncmp(text, word, len) == 0 && (text[len] == '\0' || strchr(BLANKS, text[len]));
}

bool option_syslog_is(const char *text)
{
    return option_syslog_begins(text, "syslog") || option_syslog_begins(text, "journal");
}

int option_syslog_parse(struct syslog_conf *out, struct option_value *v)
{
    bool is_journal = option_syslog_begins(v->text, "journal");
    char text[TEXT_BYTES];
    char *next, *word;
    unsigned given = 0;
    int rc;

    *out = (struct syslog_conf){.protocol = is_journal ? SYSLOG_JOURNAL : SYSLOG_RFC3164,
                                .facility = DAEMON_FACILITY,
                                .severity = -1,
                                .tag = "reactord"};
    if (strlen(v->text) >= sizeof(text))
        return option_refuse(v, "the value is longer than %d bytes", TEXT_BYTES - 1);
    strcpy(text, v->text);
    strtok_r(text, BLANKS, &next);
    word = strtok_r(NULL, BLANKS, &next);
    if (is_journal && option_syslog_is_address(word))
        return option_refuse(v, "the journal has no address %s", QUOTE_TEXT(word));
    rc = option_syslog_set_address(v, out,
                                   is_journal                       ? OPTION_SYSLOG_JOURNAL_PATH
                                   : option_syslog_is_address(word) ? word
                                                                    : OPTION_SYSLOG_PATH);
    if (option_syslog_is_address(word))
        word = strtok_r(NULL, BLANKS, &next);
    for (; rc == 0 && word; word = strtok_r(NULL, BLANKS, &next))
        rc = option_syslog_set_word(v, out, word, &given);
    return rc;
}

/* A copy of ${text} with single blanks: targets are the same log if their texts are. */
static char *option_syslog_copy(struct arena *arena, const char *text)
{
    char *copy = arena_text(arena, text, strlen(text)), *to = copy;

    for (const char *at = copy; at && *at != '\0';) {
        size_t len = strcspn(at, BLANKS);

        memmove(to, at, len);
        to += len;
        at += len + strspn(at + len, BLANKS);
        *to++ = *at != '\0' ? ' ' : '\0';
    }
    return copy;
}

int option_syslog_refuse_foreign(struct option_value *v)
{
    char word[ADDRESS_TEXT_BYTES];
    struct address found[2];

    snprintf(word, sizeof(word), "%.*s", (int)strcspn(v->text, BLANKS), v->text);
    v->foreign = true;
    if (strncmp(v->text, "syslog:", 7) == 0)
        return option_refuse(v,
                             "%s is not known; here it is 'syslog ADDRESS', and words as "
                             "facility=local7 behind it",
                             QUOTE_TEXT(v->text));
    if (strcmp(word, OPTION_SYSLOG_PATH) == 0 || address_parse_host(found, word) == 0 ||
        (word[0] != '/' && address_parse(found, ARRAY_LEN(found), word) > 0))
        return option_refuse(v, "%s is the address of a syslog; here it is 'syslog %s'",
                             QUOTE_TEXT(word), word);
    v->foreign = false;
    return 0;
}

int option_syslog_set(struct option_value *v, struct syslog_conf *conf, const char **where)
{
    int rc;

    if (!option_syslog_is(v->text)) {
        if (v->text[strlen(v->text) - 1] == '/')
            return option_refuse(v, "%s is not the path of a file", QUOTE_TEXT(v->text));
        *where = v->text;
        return 0;
    }
    rc = option_syslog_parse(conf, v);
    if (rc < 0)
        return rc;
    *where = option_syslog_copy(v->arena, v->text);
    return *where ? 0 : -ENOMEM;
}

static int option_syslog_read_target(const struct option *o, struct option_value *v,
                                     struct syslog_conf *conf)
{
    const char *where = v->text;
    int rc = option_syslog_refuse_foreign(v);

    if (rc == 0 && (*v->text == '/' || option_syslog_is(v->text)))
        rc = option_syslog_set(v, conf, &where);
    else if (rc == 0 && !option_kind_find_word(o, v))
        rc = -EINVAL;
    if (rc == 0)
        memcpy(option_field(o, v), &where, sizeof(where));
    return rc;
}

static int option_syslog_set_target(const struct option *o, struct option_value *v)
{
    struct syslog_conf conf;

    return option_syslog_read_target(o, v, &conf);
}

static int option_syslog_set_log_target(const struct option *o, struct option_value *v)
{
    struct syslog_conf conf = {.severity = -1};
    int rc = option_syslog_read_target(o, v, &conf);

    if (rc == 0 && conf.severity >= 0)
        return option_refuse(v, "severity= is for access logs: a line of the log has its own");
    return rc;
}

const struct option_kind option_syslog_target = {option_syslog_set_target, "", 0, NULL};
const struct option_kind option_syslog_log_target = {option_syslog_set_log_target, "", 0, NULL};
