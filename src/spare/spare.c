#include "spare/spare.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/loop_group.h"
#include "spare/spare_internal.h"
#include "stats/figure.h"

/* May spares made with ${a} be used with ${b}, TLS aside? */
static bool spare_is_same(const struct upstream_conf *a, const struct upstream_conf *b)
{
    const struct sock_connect_conf *one = &a->connect.sock, *other = &b->connect.sock;

    return a->spare.max_age_ns == b->spare.max_age_ns &&
           sock_options_same(&one->options, &other->options) &&
           sock_sources_same(one->sources, other->sources);
}

static struct upstream *spare_upstream(struct upstream_spares *s)
{
    return CONTAINER_OF(s, struct upstream, spares);
}

static void spare_changed(struct upstream_spares *s, const struct upstream_conf *before)
{
    if (!spare_is_same(before, spare_upstream(s)->conf))
        atomic_fetch_add(&s->changes, 1);
}

void spare_refresh(struct upstream_spares *s)
{
    struct spare_pools *pools = atomic_load(&s->pools);

    if (pools)
        spare_pools_refresh(pools);
}

/* Number of loops, including those of a prepared change; without a group, in tests: one. */
static unsigned spare_loops(const struct upstream *up)
{
    return up->workers ? loop_group_made(up->workers) : 1;
}

/*
 * Does ${conf} keep spares for servers of ${line}? Backups get spares only if all used servers are
 * backups. A PROXY header before TLS forbids spares, because it names the client, and so does the
 * client's address as source.
 */
static bool spare_is_wanted(const struct upstream_conf *conf,
                            const struct upstream_server_conf *line)
{
    bool header_first =
        conf->tls.slot && upstream_send_proxy(conf, line).version != PROXY_HEADER_NONE;

    if (conf->spare.keep == 0 || header_first || conf->connect.sock.options.transparent)
        return false;
    if (!line->backup)
        return true;
    for (unsigned i = 0; i < conf->n_servers; i++)
        if (!conf->servers[i].backup && upstream_server_is_used(&conf->servers[i]))
            return false;
    return true;
}

static struct spare *spare_of_base(struct upstream_spare *base)
{
    return CONTAINER_OF(base, struct spare, base);
}

static void spare_commit(struct upstream_spare *base, const struct upstream_conf *conf,
                         const struct upstream_server_conf *line)
{
    atomic_store(&spare_of_base(base)->is_wanted, spare_is_wanted(conf, line));
}

static void spare_init_parts(struct spare *sp, struct spare_list *parts, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        parts[i] = (struct spare_list){.spare = sp};
}

/* With an empty part for each loop of ${up}. */
static int spare_create(struct upstream_spare **out, struct upstream *up,
                        struct upstream_server *server)
{
    unsigned n = spare_loops(up);
    struct spare *sp;

    sp = aligned_alloc(alignof(struct spare), sizeof(*sp) + n * sizeof(sp->parts[0]));
    if (!sp)
        return -ENOMEM;
    *sp = (struct spare){.base.ops = &spare_upstream_ops,
                         .up = up,
                         .server = server,
                         .is_wanted = true,
                         .n_parts = n};
    spare_init_parts(sp, sp->parts, n);
    *out = &sp->base;
    return 0;
}

static struct spare_parts **spare_end_of_parts(struct spare *sp, unsigned *end)
{
    struct spare_parts **at = &sp->more;

    *end = sp->n_parts;
    for (; *at; at = &(*at)->next)
        *end = (*at)->end;
    return at;
}

static int spare_add_parts(struct spare *sp, unsigned end)
{
    unsigned first;
    struct spare_parts **at = spare_end_of_parts(sp, &first), *more;

    if (first >= end)
        return 0;
    more = aligned_alloc(alignof(struct spare_parts),
                         sizeof(*more) + (end - first) * sizeof(more->parts[0]));
    if (!more)
        return -ENOMEM;
    *more = (struct spare_parts){.first = first, .end = end};
    spare_init_parts(sp, more->parts, end - first);
    *at = more;
    return 0;
}

static int spare_prepare(struct upstream_spares *s, struct upstream_spare **out,
                         struct upstream_server *server, const struct upstream_conf *conf,
                         const struct upstream_server_conf *line)
{
    struct upstream_spare *base = *out ? *out : atomic_load(&server->spare);
    struct upstream *up = spare_upstream(s);

    if (!spare_is_wanted(conf, line))
        return 0;
    if (!base)
        return spare_create(out, up, server);
    return spare_add_parts(spare_of_base(base), spare_loops(up)); /* added while it was not used */
}

static void spare_drop_parts(struct spare *sp, unsigned n)
{
    struct spare_parts **at = &sp->more;

    while (*at && (*at)->first < n)
        at = &(*at)->next;
    while (*at) {
        struct spare_parts *last = *at;

        *at = last->next;
        free(last);
    }
}

int spare_add_loops(struct upstream *up, unsigned n)
{
    int rc = 0;

    list_for_each (node, &up->membership.servers) {
        struct spare *sp = spare_of(LIST_ENTRY(node, struct upstream_server, link));

        if (sp && rc == 0)
            rc = spare_add_parts(sp, n);
    }
    return rc;
}

void spare_drop_loops(struct upstream *up)
{
    unsigned n = up->workers ? loop_group_size(up->workers) : 1;

    list_for_each (node, &up->membership.servers) {
        struct spare *sp = spare_of(LIST_ENTRY(node, struct upstream_server, link));

        if (sp)
            spare_drop_parts(sp, n);
    }
}

struct spare_list *spare_part(struct spare *sp, unsigned number)
{
    struct spare_parts *more = sp->more;

    if (number < sp->n_parts)
        return &sp->parts[number];
    while (more && number >= more->end)
        more = more->next;
    return more ? &more->parts[number - more->first] : NULL;
}

unsigned spare_share(const struct spare_list *part)
{
    const struct upstream *up = part->spare->up;
    unsigned n = up->workers ? loop_group_in_use(up->workers) : 1;

    if (part->pool->number >= n || !atomic_load(&up->spares.is_wanted))
        return 0;
    return (up->conf->spare.keep + n - 1) / n;
}

/* No loop uses its part: the loop never did, or has called spare_list_end(). */
static void spare_destroy(struct upstream_spare *base)
{
    struct spare *sp = spare_of_base(base);

    MUST(spare_now(sp) == 0);
    spare_drop_parts(sp, 0);
    free(sp);
}

void spare_count_stale(struct upstream_server *server)
{
    spare_count(spare_of(server), SPARE_REPLACED);
}

struct spare_view {
    unsigned spares;
    bool speaks_first;
};

#define SPARE_COUNT(what, key, help) \
    FIGURE_LIVE(struct upstream_spare, COUNTER, NUMBER, counts[what], key, help)

static const struct figure spare_rows[] = {
    FIGURE_OF(struct spare_view, GAUGE, NUMBER, spares,
              "Spare connections, with those that are being opened."),
    SPARE_COUNT(SPARE_OPENED, "spares_opened", "Spare connections that were opened."),
    SPARE_COUNT(SPARE_FAILED, "spares_failed", "Attempts to open a spare connection that failed."),
    SPARE_COUNT(SPARE_USED, "spares_used", "Clients that took a spare connection."),
    SPARE_COUNT(SPARE_MISSED, "spares_missed", "Clients that found no spare connection."),
    SPARE_COUNT(SPARE_EXPIRED, "spares_expired",
                "Spare connections that were closed at spare_max_age."),
    SPARE_COUNT(SPARE_CLOSED, "spares_closed", "Spare connections that the server closed."),
    SPARE_COUNT(SPARE_DROPPED, "spares_dropped",
                "Spare connections that were closed for another reason."),
    SPARE_COUNT(SPARE_REPLACED, "spares_replaced",
                "Spare connections that were found closed after a client took them."),
    FIGURE_OF(struct spare_view, GAUGE, NUMBER, speaks_first,
              "1 if the server sends before a client does: no spares are kept."),
};

static const struct figure_table spare_table = {
    FIGURE_LIVE_TABLE(sizeof(struct spare_view), spare_rows)};

static void spare_show(const struct upstream_spare *base, const struct figure_object *object,
                       struct figure_visitor *v)
{
    const struct spare *sp = CONTAINER_OF(base, struct spare, base);
    const struct spare_view view = {.spares = spare_now(sp),
                                    .speaks_first = atomic_load(&sp->speaks_first)};

    figure_show_live(v, &spare_table, object, &view, base);
}

const struct upstream_spares_ops spare_upstream_ops = {.table = &spare_table,
                                                       .prepare = spare_prepare,
                                                       .commit = spare_commit,
                                                       .destroy = spare_destroy,
                                                       .changed = spare_changed,
                                                       .refresh = spare_refresh,
                                                       .show = spare_show};
