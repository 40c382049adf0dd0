/* upstream/spare: data shared by all loops. */
#include "upstream/spare.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "upstream/spare_internal.h"

int spare_group_init(struct spare_group *g, const struct spare_conf *conf, unsigned n_loops)
{
    *g = (struct spare_group){0};
    if (conf->keep == 0)
        return 0;
    g->pools = calloc(n_loops, sizeof(*g->pools));
    if (!g->pools)
        return -ENOMEM;
    g->n_loops = n_loops;
    return 0;
}

void spare_group_close(struct spare_group *g)
{
    free(g->pools);
    *g = (struct spare_group){0};
}

void spare_group_refresh(const struct spare_group *g)
{
    for (unsigned i = 0; i < g->n_loops; i++)
        if (g->pools[i])
            spare_pool_refresh(g->pools[i]);
}

/* No spares for backups, unless all servers are backups. */
static bool spare_is_wanted(const struct upstream *up, const struct upstream_server *server)
{
    if (!server->conf->backup)
        return true;
    for (unsigned i = 0; i < up->conf->n_servers; i++)
        if (!up->conf->servers[i].backup && upstream_server_is_used(&up->conf->servers[i]))
            return false;
    return true;
}

int spare_create(struct spare **out, struct upstream *up, struct upstream_server *server)
{
    unsigned n = up->spares.n_loops;
    struct spare *sp;

    *out = NULL;
    if (n == 0 || !spare_is_wanted(up, server))
        return 0;
    sp = aligned_alloc(alignof(struct spare), sizeof(*sp) + n * sizeof(sp->parts[0]));
    if (!sp)
        return -ENOMEM;
    *sp = (struct spare){.up = up, .server = server, .share = (up->conf->spare.keep + n - 1) / n};
    for (unsigned i = 0; i < n; i++)
        sp->parts[i] = (struct spare_list){.spare = sp};
    *out = sp;
    return 0;
}

void spare_destroy(struct spare *sp)
{
    if (!sp)
        return;
    MUST(spare_now(sp) == 0);
    free(sp);
}

void spare_count_stale(struct upstream_server *server)
{
    spare_count(server->spare, SPARE_REPLACED);
}

static uint64_t spare_counted(const struct spare *sp, enum spare_count what)
{
    return atomic_load_explicit(&sp->counts[what], memory_order_relaxed);
}

void spare_log_stats(const struct spare *sp, const char *name)
{
    if (!sp)
        return;
    log_notice("stats server %s spares=%u spares_opened=%" PRIu64 " spares_failed=%" PRIu64
               " spares_used=%" PRIu64 " spares_missed=%" PRIu64 " spares_expired=%" PRIu64
               " spares_closed=%" PRIu64 " spares_dropped=%" PRIu64 " spares_replaced=%" PRIu64
               " speaks_first=%s",
               name, spare_now(sp), spare_counted(sp, SPARE_OPENED),
               spare_counted(sp, SPARE_FAILED), spare_counted(sp, SPARE_USED),
               spare_counted(sp, SPARE_MISSED), spare_counted(sp, SPARE_EXPIRED),
               spare_counted(sp, SPARE_CLOSED), spare_counted(sp, SPARE_DROPPED),
               spare_counted(sp, SPARE_REPLACED), atomic_load(&sp->speaks_first) ? "yes" : "no");
}
