#include "stats/figure.h"

#include <stdio.h>
#include <string.h>

#include "base/must.h"

#define FIGURE_MS_SUFFIX "_ms"

/* Limit of the values of a table with live figures. */
#define FIGURE_LIVE_BYTES 320

void figure_show(struct figure_visitor *v, const struct figure_table *table,
                 const struct figure_object *object, const void *values)
{
    v->visit(v, table, object, values);
}

static void figure_load(uint64_t *out, const struct figure *f, const void *live)
{
    const void *from = (const char *)live + f->offset;

    switch (f->type) {
    case FIGURE_BOOL:
        *(bool *)out = atomic_load_explicit((const atomic_bool *)from, memory_order_relaxed);
        break;
    case FIGURE_UNSIGNED:
        *(unsigned *)out = atomic_load_explicit((const atomic_uint *)from, memory_order_relaxed);
        break;
    default: *out = atomic_load_explicit((const _Atomic uint64_t *)from, memory_order_relaxed);
    }
}

void figure_show_live(struct figure_visitor *v, const struct figure_table *table,
                      const struct figure_object *object, const void *values, const void *live)
{
    uint64_t all[FIGURE_LIVE_BYTES / sizeof(uint64_t)] = {0};

    MUST(table->bytes <= sizeof(all));
    for (unsigned i = 0; i < table->n; i++)
        if (table->figures[i].is_live)
            figure_load(&all[i], &table->figures[i], live);
    if (values)
        memcpy((char *)all + table->view_at, values, table->bytes - table->view_at);
    figure_show(v, table, object, all);
}

const struct figure_words *figure_words(enum figure_subject subject)
{
    static const struct figure_words words[] = {
        [FIGURE_PROCESS] = {.log = "process", .metric = "process"},
        [FIGURE_LOOP] = {.metric = "loop", .label = "loop"},
        [FIGURE_EXECUTOR] = {.log = "executor", .metric = "executor"},
        [FIGURE_LOOKUPS] = {.log = "lookups", .metric = "lookups"},
        [FIGURE_HANDSHAKES] = {.log = "handshakes", .metric = "handshakes"},
        [FIGURE_CERTIFICATE] = {.log = "certificate",
                                .metric = "certificate",
                                .label = "certificate",
                                .owner_label = "tls"},
        [FIGURE_MEMORY] = {.log = "memory", .metric = "memory"},
        [FIGURE_OVERLOAD] = {.log = "overload", .metric = "overload"},
        [FIGURE_REBALANCE] = {.log = "rebalance", .metric = "rebalance"},
        [FIGURE_HANDOFF] = {.log = "handoff", .metric = "handoff"},
        [FIGURE_LISTENER] = {.log = "listen", .metric = "listener", .label = "listener"},
        [FIGURE_LIMITS] = {.log = "limits", .metric = "limits", .label = "limits"},
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
