/* spare/spare_list: spares of one server on one loop. */
#include "spare/spare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/descriptor_budget.h"
#include "net/idle_watch.h"
#include "spare/spare_internal.h"
#include "spare/spare_tls.h"

/* A connection that the server ends before this age counts as rejected. */
#define SPARE_SHORT_LIFE_NS (1 * NS_PER_S)

/* Delay before closed spares are replaced: all of the same age are replaced together. */
#define SPARE_GATHER_NS (100 * NS_PER_MS)

/* A server that sent bytes and does not close in this time speaks first. */
#define SPARE_LAST_WORDS_NS (1 * NS_PER_S)

/* Interval of attempts while descriptors, memory or connection slots are short. */
#define SPARE_RETRY_NS (1 * NS_PER_S)

/* Connects begun at once. */
#define SPARE_BATCH 8

struct spare_conn {
    struct list link;
    struct spare_list *part;
    struct idle_watch idle_watch;
    struct connector connector;
    struct spare_tls *tls; /* used with TLS, instead of idle_watch; else NULL */
    bool is_open;
    unsigned changes;                     /* upstream_spares.changes when it was begun */
    struct endpoint_addresses *addresses; /* the connection is to one of them */
    int64_t opened_at_ns;                 /* in `opening`: when the attempt began */
    int64_t expires_at_ns;                /* in `spoken`: deadline for the server to close */
    struct task end;
};

static struct descriptor_budget *spare_descriptors(const struct spare_list *part)
{
    return part->pool->net->descriptors;
}

static void spare_run_end(struct task *t)
{
    free(CONTAINER_OF(t, struct spare_conn, end));
}

static const struct task_type spare_end_type = {
    .name = "end of a spare connection", .run = spare_run_end, .drop = spare_run_end};

/* Unlink ${c}; the reap step frees it, because callers may still use it. */
static void spare_leave(struct spare_conn *c)
{
    struct spare_list *part = c->part;
    struct descriptor_budget *d = spare_descriptors(part);

    list_remove(&c->link);
    part->n--;
    atomic_fetch_sub_explicit(&part->spare->n, 1, memory_order_relaxed);
    if (d)
        descriptor_budget_return(d, 1);
    endpoint_release_addresses(c->addresses);
    loop_reap(part->pool->net->loop, &c->end);
}

static void spare_close(struct spare_conn *c, enum spare_count why)
{
    connector_cancel(&c->connector);
    if (c->is_open)
        spare_count(c->part->spare, why);
    idle_watch_close(&c->idle_watch);
    spare_tls_close(c->tls);
    spare_leave(c);
}

static void spare_close_all(struct spare_list *part)
{
    struct list *lists[] = {&part->opening, &part->idle, &part->spoken};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        while (!list_empty(lists[i]))
            spare_close(LIST_FIRST(lists[i], struct spare_conn, link), SPARE_DROPPED);
}

static void spare_ended(struct spare_conn *c)
{
    struct spare_list *part = c->part;
    int64_t now_ns = clock_now_ns();
    int64_t opened_at_ns = c->opened_at_ns;

    spare_close(c, SPARE_CLOSED);
    if (now_ns - opened_at_ns < SPARE_SHORT_LIFE_NS)
        spare_pace_pause(part, opened_at_ns);
    else
        spare_pace_not_before(part, now_ns + SPARE_GATHER_NS);
    spare_pace_arm(part, part->not_before_ns);
}

/* The server sent bytes: either it closes soon, or it speaks first. */
static void spare_spoke(struct spare_conn *c)
{
    if (!c->tls)
        idle_watch_rest(&c->idle_watch);
    list_remove(&c->link);
    list_append(&c->part->spoken, &c->link);
    c->expires_at_ns = clock_now_ns() + SPARE_LAST_WORDS_NS;
    spare_pace_arm(c->part, c->expires_at_ns);
}

static void spare_on_event(struct idle_watch *s, enum sock_peek what)
{
    struct spare_conn *c = CONTAINER_OF(s, struct spare_conn, idle_watch);

    if (what == SOCK_ENDED)
        spare_ended(c);
    else
        spare_spoke(c);
}

static void spare_opened(struct spare_conn *c, int fd)
{
    struct spare_list *part = c->part;
    struct spare *sp = part->spare;

    list_remove(&c->link);
    list_append(&part->idle, &c->link);
    c->opened_at_ns = clock_now_ns();
    c->expires_at_ns = clock_add_ns(
        c->opened_at_ns, spare_pace_jitter_ns(part->pool, sp->up->conf->spare.max_age_ns));
    c->is_open = true;
    if (!c->tls)
        idle_watch_watch(&c->idle_watch, fd);
    spare_count(sp, SPARE_OPENED);
    spare_pace_arm(part, c->expires_at_ns);
    if (!c->tls)
        spare_pace_worked(sp);
}

/* Not counted for ejection: no session failed. */
static void spare_failed(struct spare_conn *c, const char *why)
{
    struct spare_list *part = c->part;
    struct spare *sp = part->spare;
    int64_t begun_at_ns = c->opened_at_ns;

    spare_close(c, SPARE_DROPPED);
    spare_count(sp, SPARE_FAILED);
    spare_pace_pause(part, begun_at_ns);
    if (!atomic_exchange(&sp->failing, true))
        log_warning("upstream %s: server %s (%s): cannot open a spare connection: %s; trying again",
                    sp->up->name, sp->server->name, sp->server->conf->address_text, why);
}

static void spare_on_tls(void *cookie, enum spare_tls_event what, const char *why)
{
    struct spare_conn *c = cookie;

    switch (what) {
    case SPARE_TLS_OPENED: spare_opened(c, -1); break;
    case SPARE_TLS_CONFIRMED: spare_pace_worked(c->part->spare); break;
    case SPARE_TLS_FAILED: spare_failed(c, why); break;
    case SPARE_TLS_SPOKE: spare_spoke(c); break;
    case SPARE_TLS_ENDED: spare_ended(c); break;
    }
}

static void spare_begin_tls(struct spare_conn *c, int fd, const struct upstream_conf *conf)
{
    const struct spare_tls_conf tls = {
        .net = c->part->pool->net,
        .tls = &conf->tls,
        .handshakes = c->part->spare->up->handshakes,
        .server = c->part->spare->server,
        .deadline_ns = loop_due_ns(loop_current(), c->opened_at_ns, conf->connect_timeout_ns),
        .event = spare_on_tls,
        .cookie = c};

    if (conf->connect.sock.options.nodelay)
        sock_nodelay(fd); /* the session's channel does not know of the handshake's bytes */
    if (spare_tls_begin(&c->tls, &tls, fd) < 0) {
        close(fd);
        spare_failed(c, strerror(ENOMEM));
    }
}

static void spare_connected(struct connector *connector, int fd, int error)
{
    struct spare_conn *c = CONTAINER_OF(connector, struct spare_conn, connector);
    const struct upstream_conf *conf = c->part->spare->up->conf; /* a reload may replace it */

    if (error < 0)
        spare_failed(c, sock_error_text(error));
    else if (conf->tls.slot)
        spare_begin_tls(c, fd, conf);
    else
        spare_opened(c, fd);
}

/* Count a new spare; false if its connection slot or descriptor is needed elsewhere. */
static bool spare_may_open(struct spare_list *part)
{
    struct spare *sp = part->spare;
    struct descriptor_budget *d = spare_descriptors(part);
    unsigned others = atomic_fetch_add_explicit(&sp->n, 1, memory_order_relaxed);

    if (!spare_over_limit(sp, others + 1) && (!d || descriptor_budget_lend(d, 1)))
        return true;
    atomic_fetch_sub_explicit(&sp->n, 1, memory_order_relaxed);
    return false;
}

static bool spare_open(struct spare_list *part)
{
    struct upstream *up = part->spare->up;
    struct endpoint_addresses *at = endpoint_hold_addresses(&part->spare->server->endpoint);
    struct spare_conn *c = at ? malloc(sizeof(*c)) : NULL;

    if (!c || !spare_may_open(part)) {
        free(c);
        endpoint_release_addresses(at);
        return false;
    }
    *c = (struct spare_conn){.part = part,
                             .changes = atomic_load(&up->spares.changes), /* before up->conf */
                             .addresses = at,
                             .opened_at_ns = clock_now_ns(),
                             .end.type = &spare_end_type};
    idle_watch_init(&c->idle_watch, part->pool->net, spare_on_event);
    connector_init(&c->connector, part->pool->net, spare_connected);
    list_append(&part->opening, &c->link);
    part->n++;
    connector_start(&c->connector, at->list, at->n, up->conf->connect_timeout_ns,
                    &up->conf->connect);
    return true;
}

static void spare_speaks_first(struct spare *sp)
{
    if (atomic_exchange(&sp->speaks_first, true))
        return;
    log_warning("upstream %s: server %s (%s): speaks before its client does; it gets no more spare "
                "connections",
                sp->up->name, sp->server->name, sp->server->conf->address_text);
    spare_refresh(&sp->up->spares);
}

/* Close expired spares of ${l}; return when the next one expires. */
static int64_t spare_expire(struct spare_list *part, struct list *l, int64_t now_ns)
{
    int64_t next_ns = CLOCK_NEVER;

    list_for_each_safe (node, l) {
        struct spare_conn *c = LIST_ENTRY(node, struct spare_conn, link);

        if (c->expires_at_ns > now_ns) {
            next_ns = c->expires_at_ns < next_ns ? c->expires_at_ns : next_ns;
        } else if (l == &part->idle) {
            spare_close(c, SPARE_EXPIRED);
        } else if (!c->tls && idle_watch_peek(&c->idle_watch) == SOCK_ENDED) {
            spare_ended(c);
        } else {
            spare_close(c, SPARE_DROPPED);
            spare_speaks_first(part->spare);
        }
    }
    return next_ns;
}

/* Does ${c} have the settings that a new session would use? */
static bool spare_is_current(const struct spare_conn *c)
{
    const struct upstream *up = c->part->spare->up;
    const struct upstream_tls_conf *tls = &up->conf->tls;

    return c->changes == atomic_load(&up->spares.changes) &&
           (c->tls ? spare_tls_fits(c->tls, tls) : !tls->slot || !c->is_open);
}

/* Close spares with other addresses or other settings. */
static void spare_close_outdated(struct spare_list *part, struct list *l)
{
    const struct endpoint_addresses *at = atomic_load(&part->spare->server->endpoint.addresses);

    list_for_each_safe (node, l) {
        struct spare_conn *c = LIST_ENTRY(node, struct spare_conn, link);

        /* ${c} references its list, so a new list cannot reuse the pointer */
        if (c->addresses != at || !spare_is_current(c))
            spare_close(c, SPARE_DROPPED);
    }
}

static void spare_make_way(struct spare_list *part)
{
    unsigned share = spare_share(part);

    while (part->n > share ||
           (spare_over_limit(part->spare, spare_now(part->spare)) && part->n > 0)) {
        struct list *l = !list_empty(&part->opening) ? &part->opening
                         : !list_empty(&part->idle)  ? &part->idle
                                                     : &part->spoken;

        spare_close(LIST_FIRST(l, struct spare_conn, link), SPARE_DROPPED);
    }
}

/* Returns when to continue; CLOCK_NEVER: no need. */
static int64_t spare_refill(struct spare_list *part, int64_t now_ns)
{
    unsigned begun = 0, share = spare_share(part);

    if (part->n >= share || !spare_pool_wants(part->pool, part->spare))
        return CLOCK_NEVER;
    if (part->not_before_ns > now_ns)
        return part->not_before_ns;
    while (part->n < share && begun < SPARE_BATCH) {
        if (!spare_open(part)) {
            spare_pace_not_before(part, now_ns + SPARE_RETRY_NS);
            return part->not_before_ns;
        }
        begun++;
    }
    return part->n < share ? now_ns : CLOCK_NEVER;
}

static void spare_list_clear(struct spare_list *part)
{
    spare_close_all(part);
    loop_cancel(part->pool->net->loop, &part->timer);
    part->not_before_ns = part->paused_until_ns = part->pause_ns = 0;
}

void spare_list_refresh(struct spare_list *part)
{
    const struct descriptor_budget *d = spare_descriptors(part);
    int64_t now_ns = loop_heard_ns(part->pool->net->loop), at_ns, next_ns;

    if (!spare_pool_wants(part->pool, part->spare)) {
        spare_list_clear(part);
        return;
    }
    if (d && descriptor_budget_wanted_back(d))
        spare_close_all(part);
    spare_close_outdated(part, &part->opening);
    spare_close_outdated(part, &part->idle);
    spare_make_way(part);
    at_ns = spare_expire(part, &part->idle, now_ns);
    next_ns = spare_expire(part, &part->spoken, now_ns);
    at_ns = next_ns < at_ns ? next_ns : at_ns;
    next_ns = spare_refill(part, now_ns);
    at_ns = next_ns < at_ns ? next_ns : at_ns;
    if (at_ns != CLOCK_NEVER)
        spare_pace_arm(part, at_ns);
}

/* End the part of a removed server, which the part references. */
static void spare_run_timer(struct task *t)
{
    struct spare_list *part = TIMER_OWNER(t, struct spare_list, timer);

    if (part->pool->stopped ||
        (endpoint_load(&part->spare->server->endpoint) & ENDPOINT_ABSENT) != 0)
        spare_list_end(part);
    else
        spare_list_refresh(part);
}

/* The loop ends: spare_pool_stop() was called. */
static void spare_drop_timer(struct task *t)
{
    spare_list_end(TIMER_OWNER(t, struct spare_list, timer));
}

static const struct task_type spare_timer_type = {
    .name = "spare connections", .run = spare_run_timer, .drop = spare_drop_timer};

void spare_list_begin(struct spare_list *part, struct spare_pool *pool)
{
    MUST(!part->pool);
    *part = (struct spare_list){.spare = part->spare, .pool = pool};
    list_init(&part->opening);
    list_init(&part->idle);
    list_init(&part->spoken);
    timer_init_silence(&part->timer, &spare_timer_type);
    list_append(&pool->parts, &part->link);
    upstream_server_hold(part->spare->server);
}

void spare_list_end(struct spare_list *part)
{
    spare_list_clear(part);
    list_remove(&part->link);
    part->pool = NULL;
    upstream_server_release(part->spare->server); /* may free the part */
}

/* Move the connection of ${c} to ${out}; false: it cannot be used. */
static bool spare_take_one(struct spare_conn *c, struct session_spare *out)
{
    *out = (struct session_spare){.addresses = c->addresses, .which = c->connector.connected};
    if (!spare_is_current(c) || (c->tls && !spare_tls_is_silent(c->tls)))
        return false;
    if (c->tls) {
        out->fd = spare_tls_take(c->tls, &out->tls);
        c->tls = NULL;
    } else {
        out->fd = idle_watch_take(&c->idle_watch);
    }
    c->addresses = NULL;
    return true;
}

static bool spare_take_living(struct spare_list *part, struct session_spare *out)
{
    while (!list_empty(&part->idle)) {
        struct spare_conn *c = LIST_ENTRY(part->idle.prev, struct spare_conn, link);
        enum sock_peek what = c->tls ? SOCK_SILENT : idle_watch_peek(&c->idle_watch);

        if (what != SOCK_SILENT) {
            spare_on_event(&c->idle_watch, what);
        } else if (spare_take_one(c, out)) {
            spare_leave(c);
            return true;
        } else {
            spare_close(c, SPARE_DROPPED);
        }
    }
    return false;
}

bool spare_list_take(struct spare_list *part, struct session_spare *out)
{
    struct spare *sp = part->spare;
    bool is_taken = spare_take_living(part, out);
    int64_t now_ns = clock_now_ns();

    spare_count(sp, is_taken ? SPARE_USED : SPARE_MISSED);
    if (part->n < spare_share(part))
        spare_pace_arm(part, part->not_before_ns > now_ns ? part->not_before_ns : now_ns);
    return is_taken;
}
