#include "service/mirror.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/connector.h"
#include "net/descriptor_budget.h"
#include "net/memory_account.h"
#include "net/sock.h"
#include "service/session.h"
#include "stats/counters.h"
#include "upstream/upstream.h"
#include "stats/figure.h"

/* NEW -> CONNECTING -> OPEN -> ENDING -> OVER; each state may also change to OVER directly */
enum mirror_state { MIRROR_NEW, MIRROR_CONNECTING, MIRROR_OPEN, MIRROR_ENDING, MIRROR_OVER };

struct mirror {
    alignas(
        CACHE_LINE_BYTES) struct channel ch; /* to the server; see note: layout in net/channel.h */
    struct handler tail;
    struct handler handler;
    struct mirror_plan plan; /* with references to its counters and upstream */
    struct netloop *net;
    struct channel_linger_conf linger;
    enum mirror_state state;
    bool eof;
    bool rejected; /* a handler has rejected the client's stream */
    bool client_gone;
    uint64_t key;
    uint64_t offered;
    struct buffer early; /* client's bytes until the mirror is connected */
    struct connector connector;
    struct upstream_server *at;
    struct endpoint_addresses *addresses; /* of `at`; a reference until `at` is left */
    int64_t tried_at_ns;
};

static void mirror_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

int mirror_counters_create(struct mirror_counters **out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return -ENOMEM;
    ref_init(&(*out)->references);
    return 0;
}

struct mirror_counters *mirror_counters_hold(struct mirror_counters *c)
{
    ref_hold(&c->references);
    return c;
}

void mirror_counters_release(struct mirror_counters *c)
{
    if (ref_release(&c->references))
        free(c);
}

static void mirror_free_if_done(struct mirror *m)
{
    if (!m->client_gone || m->state != MIRROR_OVER)
        return;
    mirror_count(&m->plan.counters->bytes, m->ch.bytes_out);
    mirror_count(&m->plan.counters->lost, m->offered - m->ch.bytes_out);
    mirror_counters_release(m->plan.counters);
    upstream_release(m->plan.upstream);
    free(m);
}

static void mirror_over(struct mirror *m, enum upstream_outcome outcome)
{
    m->state = MIRROR_OVER;
    memory_account_clear(m->net->buffered, &m->early);
    if (!m->at)
        return;
    endpoint_release_addresses(m->addresses);
    m->addresses = NULL;
    upstream_leave(m->plan.upstream, m->at, outcome);
    m->at = NULL;
    if (m->net->descriptors)
        descriptor_budget_release(m->net->descriptors, 1);
}

static void mirror_give_up(struct mirror *m)
{
    if (m->state == MIRROR_OPEN) {
        m->state = MIRROR_ENDING;
        channel_abort(&m->ch, 0); /* mirror_closed() follows */
    } else if (m->state == MIRROR_CONNECTING) {
        connector_cancel(&m->connector);
        mirror_over(m, UPSTREAM_UNKNOWN);
    }
}

static void mirror_cut(struct mirror *m, bool is_whole)
{
    if (m->state == MIRROR_OPEN || (m->state == MIRROR_CONNECTING && !is_whole))
        mirror_count(&m->plan.counters->cut, 1);
    mirror_give_up(m);
}

static void mirror_abandon(struct mirror *m)
{
    if (m->state != MIRROR_OPEN && m->state != MIRROR_CONNECTING)
        return;
    mirror_count(&m->plan.counters->abandoned, 1);
    mirror_give_up(m);
}

static void mirror_on_nothing(struct handler *h)
{
    (void)h; /* the channel discards answers, and the client never waits */
}

static struct mirror *mirror_of_tail(struct handler *h)
{
    return CONTAINER_OF(h, struct mirror, tail);
}

static void mirror_closed(struct mirror *m)
{
    if (m->state == MIRROR_OPEN && !m->eof)
        mirror_count(&m->plan.counters->abandoned, 1);
    mirror_over(m, UPSTREAM_UNKNOWN);
    mirror_free_if_done(m);
}

static void mirror_ended(struct handler *h, enum handler_end what, int error)
{
    struct mirror *m = mirror_of_tail(h);

    (void)error;
    if (what == HANDLER_BROKEN)
        mirror_abandon(m);
    else if (what == HANDLER_CLOSED)
        mirror_closed(m);
}

static const struct handler_ops mirror_tail_ops = {.name = "mirror",
                                                   .active = mirror_on_nothing,
                                                   .ended = mirror_ended,
                                                   .writable = mirror_on_nothing};

static void mirror_send(struct mirror *m, const void *data, size_t len)
{
    if (len > 0 && (channel_pending_bytes(&m->ch) + len > m->plan.buffer_bytes ||
                    channel_write(&m->ch, data, len) < 0))
        mirror_abandon(m);
}

static void mirror_failed(struct mirror *m, int error)
{
    bool is_mine = sock_error_is_exhaustion(error) || sock_error_is_ours(error);

    mirror_count(&m->plan.counters->failed, 1);
    if (m->at)
        counters_connect_failed(&m->at->connects);
    mirror_over(m, is_mine ? UPSTREAM_UNKNOWN : UPSTREAM_FAILED);
}

static void mirror_connected(struct connector *c, int fd, int error)
{
    struct mirror *m = CONTAINER_OF(c, struct mirror, connector);

    if (error < 0) {
        mirror_failed(m, error);
        return;
    }
    mirror_count(&m->plan.counters->connected, 1);
    upstream_connected(m->plan.upstream, m->at);
    counters_connected(&m->at->connects, clock_now_ns() - m->tried_at_ns);
    m->state = MIRROR_OPEN;
    channel_init(&m->ch, m->net, fd);
    channel_nodelay(&m->ch, &m->plan.upstream->conf->connect.sock.options);
    pipeline_init(&m->ch.pipeline, &m->ch, &m->tail, &mirror_tail_ops);
    channel_discard(&m->ch, 0);
    m->ch.linger_conf = &m->linger;
    channel_start(&m->ch);
    mirror_send(m, buffer_front(&m->early), buffer_bytes(&m->early));
    memory_account_clear(m->net->buffered, &m->early);
    if (m->eof)
        channel_shutdown_write(&m->ch);
}

static void mirror_connect(struct mirror *m)
{
    struct upstream *up = m->plan.upstream;
    struct balancer_pick_state pick;

    balancer_begin(&pick, m->key);
    if (m->net->descriptors && !descriptor_budget_take(m->net->descriptors)) {
        mirror_failed(m, -EMFILE);
        return;
    }
    if (upstream_pick(up, &pick, &m->at) < 0) {
        m->at = NULL;
        if (m->net->descriptors)
            descriptor_budget_release(m->net->descriptors, 1);
        mirror_failed(m, -ENOENT);
        return;
    }
    m->state = MIRROR_CONNECTING;
    m->addresses = endpoint_hold_addresses(&m->at->endpoint);
    MUST(m->addresses);
    m->tried_at_ns = clock_now_ns();
    connector_init(&m->connector, m->net, mirror_connected);
    connector_start(&m->connector, m->addresses->list, m->addresses->n,
                    up->conf->connect_timeout_ns, &up->conf->connect);
}

static struct mirror *mirror_of(struct handler *h)
{
    return CONTAINER_OF(h, struct mirror, handler);
}

static void mirror_client_active(struct handler *h)
{
    handler_active(h->next);
    mirror_connect(mirror_of(h));
}

static void mirror_client_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct mirror *m = mirror_of(h);

    handler_read(h->next, data, len);
    m->offered += len;
    if (m->state == MIRROR_OPEN)
        mirror_send(m, data, len);
    else if (m->state == MIRROR_CONNECTING &&
             (buffer_bytes(&m->early) + len > m->plan.buffer_bytes ||
              memory_account_append(m->net->buffered, &m->early, data, len) < 0))
        mirror_abandon(m);
}

static void mirror_client_eof(struct mirror *m)
{
    m->eof = true;
    if (m->state == MIRROR_OPEN)
        channel_shutdown_write(&m->ch);
}

static void mirror_client_closed(struct mirror *m, int error)
{
    bool is_cut = error < 0 || m->rejected || channel_input_cut(m->handler.channel);
    bool is_whole = m->eof || !is_cut;

    m->client_gone = true;
    if (m->state == MIRROR_OPEN && is_whole) {
        m->state = MIRROR_ENDING;
        channel_end(&m->ch, CHANNEL_END_FLUSH | CHANNEL_END_BOUNDED);
    } else if (m->state == MIRROR_NEW) {
        m->state = MIRROR_OVER;
    } else {
        mirror_cut(m, is_whole);
    }
    mirror_free_if_done(m);
}

/* Pass the event on first, except HANDLER_CLOSED: passing that on may end the session. */
static void mirror_client_ended(struct handler *h, enum handler_end what, int error)
{
    struct handler *next = h->next;

    if (what == HANDLER_CLOSED)
        mirror_client_closed(mirror_of(h), error);
    else if (what == HANDLER_REJECTED)
        mirror_of(h)->rejected = true;
    handler_ended(next, what, error);
    if (what == HANDLER_EOF)
        mirror_client_eof(mirror_of(h));
}

static size_t mirror_client_held(const struct handler *h)
{
    const struct mirror *m = CONTAINER_OF(h, const struct mirror, handler);

    return m->early.cap + (m->state == MIRROR_OPEN ? channel_held_bytes(&m->ch) : 0);
}

static size_t mirror_client_reclaim(struct handler *h)
{
    size_t bytes = mirror_client_held(h);

    if (bytes > 0)
        mirror_abandon(mirror_of(h));
    return bytes;
}

static bool mirror_may_move(const struct handler *h)
{
    const struct mirror *m = CONTAINER_OF(h, const struct mirror, handler);

    return m->state == MIRROR_OVER || (m->state == MIRROR_OPEN && channel_may_move(&m->ch));
}

/* A mirror has no pipe, so it leaves without fail. */
static void mirror_leave_loop(struct handler *h)
{
    struct mirror *m = mirror_of(h);

    if (m->state == MIRROR_OPEN)
        MUST(channel_leave_loop(&m->ch) == 0);
}

static void mirror_join_loop(struct handler *h)
{
    struct mirror *m = mirror_of(h);

    m->net = channel_net(h->channel);
    if (m->state == MIRROR_OPEN)
        channel_join_loop(&m->ch, m->net);
}

static const struct handler_ops mirror_ops = {.name = "mirror",
                                              .active = mirror_client_active,
                                              .read = mirror_client_read,
                                              .ended = mirror_client_ended,
                                              .held = mirror_client_held,
                                              .reclaim = mirror_client_reclaim,
                                              .may_move = mirror_may_move,
                                              .leave_loop = mirror_leave_loop,
                                              .join_loop = mirror_join_loop};

void mirror_add(struct session *s, struct channel *ch)
{
    const struct mirror_plan *plan = s->service->mirror;
    struct mirror *m = aligned_alloc(alignof(struct mirror), sizeof(*m));

    if (!m) {
        mirror_count(&plan->counters->failed, 1);
        return;
    }
    memset(m, 0, sizeof(*m));
    m->plan = *plan;
    (void)mirror_counters_hold(plan->counters);
    (void)upstream_hold(plan->upstream);
    m->net = s->owner->net;
    m->linger = s->service->conf->linger;
    m->key = session_key(s);
    buffer_init(&m->early);
    pipeline_add(&ch->pipeline, &m->handler, &mirror_ops);
}

static const struct figure mirror_rows[] = {
    FIGURE_LIVE(struct mirror_counters, COUNTER, NUMBER, connected, "mirrors",
                "Clients that had a mirror."),
    FIGURE_LIVE(struct mirror_counters, COUNTER, NUMBER, failed, "mirror_failures",
                "Clients that should have had a mirror but did not."),
    FIGURE_LIVE(struct mirror_counters, COUNTER, NUMBER, abandoned, "mirrors_abandoned",
                "Mirrors that were too slow or ended before their client."),
    FIGURE_LIVE(struct mirror_counters, COUNTER, BYTES, bytes, "mirror_bytes",
                "Bytes that mirrors got, of clients that have gone."),
    FIGURE_LIVE(struct mirror_counters, COUNTER, BYTES, lost, "mirror_bytes_lost",
                "Bytes that mirrors did not get, of clients that have gone."),
    FIGURE_LIVE(struct mirror_counters, COUNTER, NUMBER, cut, "mirrors_cut",
                "Mirrors that were reset, as the stream of their client was cut."),
};

const struct figure_table mirror_figures = {FIGURE_LIVE_TABLE(0, mirror_rows)};
