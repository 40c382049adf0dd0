/*
 * upstream/upstream_spares: what an upstream asks of spare/, which keeps spare connections to its
 * servers. An upstream without operations keeps none.
 */
#ifndef UPSTREAM_UPSTREAM_SPARES_H
#define UPSTREAM_UPSTREAM_SPARES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct figure_object;
struct figure_table;
struct figure_visitor;
struct spare_pools;
struct upstream_conf;
struct upstream_server;
struct upstream_server_conf;
struct upstream_spares;
struct upstream_spares_ops;

struct upstream_spares_conf {
    unsigned keep; /* spares of each server; 0: none */
    int64_t max_age_ns;
};

#define UPSTREAM_SPARE_COUNTS 8

/* Of a server that has, or had, spare connections. */
struct upstream_spare {
    const struct upstream_spares_ops *ops;
    _Atomic uint64_t counts[UPSTREAM_SPARE_COUNTS]; /* relaxed; see upstream_spares_ops.table */
};

/* Operations; those without another thread are called on the control loop, or before start. */
struct upstream_spares_ops {
    const struct figure_table *table; /* live figures are those of struct upstream_spare */
    /*
     * Prepare to use ${server} with ${conf} and ${line}. If it needs a spare object and has none,
     * create ${out}, unless that is not NULL: it was prepared before.
     * Errors: 0; -ENOMEM
     */
    int (*prepare)(struct upstream_spares *s, struct upstream_spare **out,
                   struct upstream_server *server, const struct upstream_conf *conf,
                   const struct upstream_server_conf *line);
    /* Use ${conf} and ${line} for the server of ${spare}. */
    void (*commit)(struct upstream_spare *spare, const struct upstream_conf *conf,
                   const struct upstream_server_conf *line);
    /* Free ${spare}, whose server no loop uses any more. */
    void (*destroy)(struct upstream_spare *spare);
    /* Another configuration has replaced ${before}. */
    void (*changed)(struct upstream_spares *s, const struct upstream_conf *before);
    /* Any thread: servers may need more or fewer spares now. */
    void (*refresh)(struct upstream_spares *s);
    /* Any thread: show ${v} the figures of the server ${object}. */
    void (*show)(const struct upstream_spare *spare, const struct figure_object *object,
                 struct figure_visitor *v);
};

/* Of an upstream. */
struct upstream_spares {
    const struct upstream_spares_ops *ops; /* NULL: no spares */
    /* Set by the first spare_pools_commit() with this upstream; NULL before. */
    _Atomic(struct spare_pools *) pools;
    atomic_bool is_wanted; /* a listener uses the upstream */
    atomic_uint changes;   /* how often the settings that spares are made with have changed */
};

/*
 * upstream_spares_prepare(s, out, server, conf, line) / upstream_spares_changed(s, before) /
 * upstream_spares_refresh(s):
 * Call the operation, if there are any.
 *
 * Thread, Errors: as the operation
 */
static inline int upstream_spares_prepare(struct upstream_spares *s, struct upstream_spare **out,
                                          struct upstream_server *server,
                                          const struct upstream_conf *conf,
                                          const struct upstream_server_conf *line)
{
    return s->ops ? s->ops->prepare(s, out, server, conf, line) : 0;
}

static inline void upstream_spares_changed(struct upstream_spares *s,
                                           const struct upstream_conf *before)
{
    if (s->ops)
        s->ops->changed(s, before);
}

static inline void upstream_spares_refresh(struct upstream_spares *s)
{
    if (s->ops)
        s->ops->refresh(s);
}

#endif
