#include "stats/figure.h"

#include <stdio.h>
#include <string.h>

#include "base/must.h"

#define FIGURE_MS_SUFFIX "_ms"

void figure_show(struct figure_visitor *v, const struct figure_table *table,
                 const struct figure_object *object, const void *values)
{
    v->visit(v, table, object, values);
}

const struct figure_words *figure_words(enum figure_subject subject)
{
    static const struct figure_words words[] = {
        [FIGURE_PROCESS] = {.log = "process", .metric = "process"},
        [FIGURE_LOOP] = {.metric = "loop", .label = "loop"},
        [FIGURE_EXECUTOR] = {.log = "executor", .metric = "executor"},
        [FIGURE_HANDSHAKES] = {.log = "handshakes", .metric = "handshakes"},
        [FIGURE_CERTIFICATE] = {.log = "certificate",
                                .metric = "certificate",
                                .label = "certificate",
                                .owner_label = "tls"},
        [FIGURE_MEMORY] = {.log = "memory", .metric = "memory"},
        [FIGURE_OVERLOAD] = {.log = "overload", .metric = "overload"},
        [FIGURE_LISTENER] = {.log = "listen", .metric = "listener", .label = "listener"},
        [FIGURE_UPSTREAM] = {.log = "upstream", .metric = "upstream", .label = "upstream"},
        [FIGURE_SERVER] = {.log = "server",
                           .metric = "server",
                           .label = "server",
                           .owner_label = "upstream"},
        [FIGURE_ACCESS_LOG] = {.log = "access_log", .metric = "access_log", .label = "access_log"},
    };

    _Static_assert(ARRAY_LEN(words) == FIGURE_SUBJECTS, "a subject has no words");
    MUST((size_t)subject < ARRAY_LEN(words));
    return &words[subject];
}

static const char *figure_unit_suffix(const struct figure *figure)
{
    switch (figure->unit) {
    case FIGURE_NS: return "_seconds";
    case FIGURE_BYTES: return strstr(figure->name, "bytes") ? "" : "_bytes";
    case FIGURE_PERCENT: return strstr(figure->name, "ratio") ? "" : "_ratio";
    case FIGURE_NUMBER: break;
    }
    return "";
}

static bool figure_ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), len = strlen(suffix);

    return n >= len && strcmp(name + n - len, suffix) == 0;
}

bool figure_metric(char *name, enum figure_subject subject, const struct figure_table *table,
                   const struct figure *figure)
{
    bool counts = figure->kind == FIGURE_COUNTER || figure->kind == FIGURE_REASONS;
    size_t len = strlen(figure->name);
    int n;

    if (figure->kind == FIGURE_TEXT || figure->kind == FIGURE_DERIVED)
        return false;
    if (figure->unit == FIGURE_NS && figure_ends_in(figure->name, FIGURE_MS_SUFFIX))
        len -= strlen(FIGURE_MS_SUFFIX);
    n = snprintf(name, FIGURE_METRIC_BYTES, "reactord_%s_%s%s%.*s%s%s",
                 figure_words(subject)->metric, table->prefix ? table->prefix : "",
                 figure->kind == FIGURE_REASONS ? "sessions_" : "", (int)len, figure->name,
                 figure_unit_suffix(figure),
                 counts && !figure_ends_in(figure->name, "_total") ? "_total" : "");
    MUST(n > 0 && n < FIGURE_METRIC_BYTES);
    return true;
}
