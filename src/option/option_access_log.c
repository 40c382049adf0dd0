/* option/option_access_log: options of [access_log NAME], and their kinds. */
#include "option/option_access_log.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_need.h"
#include "option/option_syslog.h"
#include "ini/diagnostics.h"
#include "ini/foreign_words.h"
#include "listen/listener.h"
#include "stats/access_log_format.h"
#include "stats/syslog_conf.h"

#define NAMES_BYTES 1024

static void option_access_log_list_names(char *list, size_t size)
{
    const char *name;
    size_t len = 0;

    for (unsigned i = 0; (name = access_log_format_variable(i)) && len < size; i++)
        len += (size_t)snprintf(list + len, size - len, "%s%s", i > 0 ? ", " : "", name);
    MUST(len < size);
}

static int option_access_log_refuse_name(struct option_value *v, const char *name)
{
    char names[NAMES_BYTES] = "";
    struct diagnostics_suggestion near;
    const char *known;

    diagnostics_suggest(&near, name);
    for (unsigned i = 0; (known = access_log_format_variable(i)); i++)
        diagnostics_offer(&near, known);
    if (near.best)
        return option_refuse(v, "there is no variable %s; did you mean '%s'?", QUOTE_TEXT(name),
                             near.best);
    option_access_log_list_names(names, sizeof(names));
    return option_refuse(v, "there is no variable %s; there are %s", QUOTE_TEXT(name), names);
}

/* A format without variables is probably a misspelt name of a format. */
static int option_access_log_refuse_constant(struct option_value *v)
{
    struct diagnostics_suggestion near;

    diagnostics_suggest(&near, v->text);
    diagnostics_offer(&near, "text");
    diagnostics_offer(&near, "json");
    if (near.best)
        return option_refuse(v, "%s is not known; did you mean '%s'?", QUOTE_TEXT(v->text),
                             near.best);
    return option_refuse(v, "%s has no variable in it", QUOTE_TEXT(v->text));
}

static int option_access_log_refuse(struct option_value *v,
                                    const struct access_log_format_problem *problem)
{
    char name[SUGGEST_WORD_BYTES + 2];

    snprintf(name, sizeof(name), "%.*s", (int)problem->len, problem->name);
    switch (problem->kind) {
    case ACCESS_LOG_FORMAT_NO_NAME:
        return *name == '\0' ? option_refuse(v, "the name of a variable is missing at the end")
                             : option_refuse(v, "the name of a variable is missing before %s",
                                             QUOTE_TEXT(name));
    case ACCESS_LOG_FORMAT_UNKNOWN: return option_access_log_refuse_name(v, name);
    case ACCESS_LOG_FORMAT_TWICE: return option_refuse(v, "%s is given twice", QUOTE_TEXT(name));
    case ACCESS_LOG_FORMAT_CONSTANT: return option_access_log_refuse_constant(v);
    case ACCESS_LOG_FORMAT_LONG:
        return option_refuse(v, "a line could be longer than %d bytes", ACCESS_LOG_LINE_BYTES);
    }
    return -EINVAL;
}

static int option_access_log_set_format(const struct option *o, struct option_value *v)
{
    const struct access_log_format *format;
    struct access_log_format_problem problem;
    int rc = access_log_format_parse(&format, v->text, v->arena, &problem);

    if (rc == -EINVAL)
        return option_access_log_refuse(v, &problem);
    if (rc == 0)
        memcpy(option_field(o, v), &format, sizeof(format));
    return rc;
}

const struct option_kind option_access_log_format = {option_access_log_set_format, "", 0, NULL};

const struct option_word option_access_log_targets[] = {
    {"off", 0}, {"stderr", 0}, {"syslog", 0}, {"journal", 0}, {NULL, 0},
};

static bool option_access_log_is_target(const char *text)
{
    for (const struct option_word *w = option_access_log_targets; w->word; w++)
        if (strcmp(text, w->word) == 0)
            return true;
    return *text == '/' || option_syslog_is(text);
}

static int option_access_log_set_names(const struct option *o, struct option_value *v)
{
    struct listener_access_log_conf *conf = option_field(o, v), parsed = *conf;
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    struct option_names names = {.max = SERVICE_ACCESS_LOGS};
    int rc = 0;

    names.list = arena_alloc(v->arena, SERVICE_ACCESS_LOGS, sizeof(*names.list));
    parsed.logs = arena_alloc(v->arena, SERVICE_ACCESS_LOGS, sizeof(*parsed.logs));
    if (!list || !names.list || !parsed.logs)
        return -ENOMEM;
    while (rc == 0 && list) {
        char *name = option_kind_next_item(&list);

        rc = option_access_log_is_target(name)
                 ? option_refuse(v, "%s stands beside others: only names can be several",
                                 QUOTE_TEXT(name))
                 : option_kind_add_name(&names, v, name);
    }
    parsed.names = names.list;
    parsed.n_names = names.n;
    if (rc == 0)
        *conf = parsed;
    return rc;
}

static int option_access_log_set_list(const struct option *o, struct option_value *v)
{
    struct listener_access_log_conf *conf = option_field(o, v);
    struct foreign_words_hint hint;
    struct syslog_conf syslog;

    v->foreign = foreign_words_hint(&hint, o->key, v->text, strlen(v->text));
    if (v->foreign)
        return option_refuse(v, "%s is not known; %s", QUOTE_TEXT(v->text), hint.text);
    if (option_syslog_refuse_foreign(v) < 0)
        return -EINVAL;
    if (!option_access_log_is_target(v->text))
        return option_access_log_set_names(o, v);
    return option_syslog_set(v, &syslog, &conf->own.where);
}

const struct option_kind option_access_log_list = {option_access_log_set_list, "", 0, NULL};

/* ---- [access_log NAME] ---- */

static const struct option_word targets[] = {
    {"stderr", 0},
    {"syslog", 0},
    {"journal", 0},
    {NULL, 0},
};

static const struct option_word onlies[] = {
    {"all", ACCESS_LOG_ALL},
    {"errors", ACCESS_LOG_ERRORS},
    {"denied", ACCESS_LOG_DENIED},
    {"data", ACCESS_LOG_DATA},
    {NULL, 0},
};

#define SHARE_WHOLE     (UINT64_C(1) << 32)
#define SHARE_MAX_PARTS 1000000

/* `P%`, or `1/N`. */
static int option_access_log_set_share(const struct option *o, struct option_value *v)
{
    size_t len = strlen(v->text);
    char number[32];
    uint64_t n;

    if (strncmp(v->text, "1/", 2) == 0 && parse_uint(&n, v->text + 2, SHARE_MAX_PARTS) == 0 &&
        n > 0) {
        *(uint64_t *)option_field(o, v) = SHARE_WHOLE / n;
        return 0;
    }
    if (v->text[len - 1] == '%' && len < sizeof(number)) {
        memcpy(number, v->text, len - 1);
        number[len - 1] = '\0';
        if (parse_uint(&n, number, 100) == 0 && n > 0) {
            *(uint64_t *)option_field(o, v) = SHARE_WHOLE * n / 100;
            return 0;
        }
    }
    return option_refuse(v, "%s is not a share", QUOTE_TEXT(v->text));
}

static const struct option_kind share_kind = {option_access_log_set_share, "", sizeof(uint64_t),
                                              NULL};

#define LOG(field) offsetof(struct listener_log_conf, field)

/* clang-format off */
static const struct option access_log_rows[] = {
    {"target", &option_syslog_target, OPTION_REQUIRED, OPTION_LIVE, NULL,
     "stderr, syslog, journal or an absolute path; behind syslog and its address: facility=, "
     "severity=, tag=, format=, host=, length=",
     "where the lines go",
     LOG(where), 0, 0, targets, NULL},
    {"format", &option_access_log_format, 0, OPTION_LIVE, "text",
     "text, json, json:NAME,NAME or text with $NAME in it", "format of a line",
     LOG(format), 0, 0, NULL, NULL},
    {"only", &option_kind_word, 0, OPTION_LIVE, "all",
     "all, errors, denied or data", "which connections have lines",
     LOG(filter.only), 0, 0, onlies, NULL},
    {"share", &share_kind, 0, OPTION_LIVE, "100%",
     "1% to 100%, or 1/1 to 1/1000000", "share of the connections that have lines",
     LOG(filter.share), 0, 0, NULL, NULL},
    {"at_connect", &option_kind_bool, 0, OPTION_LIVE, "no",
     "yes or no", "whether a connection has a line when its server is connected, too",
     LOG(at_connect), 0, 0, NULL, &option_need_every_connection},
};
/* clang-format on */

const struct option_rows option_access_log = {access_log_rows, ARRAY_LEN(access_log_rows)};
