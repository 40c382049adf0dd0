#include "service/echo.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>

#include "service/relay.h"
#include "service/session_handlers.h"
#include "service/session_preface.h"
#include "service/session_state.h"

struct echo {
    alignas(CACHE_LINE_BYTES) struct channel client; /* see note: layout in net/channel.h */
    struct relay back;
    struct session session;
};

/*
 * note: size. The allocator's header and alignment add a cache line to each session. With 10,000
 * idle connections a cache line costs 0.6 MB.
 */
_Static_assert(sizeof(struct echo) <= 13 * CACHE_LINE_BYTES, "see note: size");

static struct echo *echo_of(const struct session *s)
{
    return CONTAINER_OF(s, struct echo, session);
}

static void echo_free(struct session *s)
{
    free(echo_of(s));
}

static int echo_create(struct session **out, const struct service *service)
{
    struct echo *e = session_handlers_alloc(service, sizeof(*e));

    if (!e)
        return -ENOMEM;
    session_init(&e->session, service);
    *out = &e->session;
    return 0;
}

static void echo_open(struct session *s)
{
    struct echo *e = echo_of(s);

    channel_init(&e->client, s->owner->net, s->client_fd);
    s->client_fd = -1;
    session_leg_open(s, 0, &e->client);
    relay_init(&e->back, s, &e->client, &e->client);
    session_handlers_add(s, &e->client, e + 1);
}

static void echo_start(struct session *s)
{
    session_preface_read(s);
}

static void echo_carry_over(struct session *s)
{
    relay_carry_over(&echo_of(s)->back);
}

static void echo_save(const struct session *s, struct session_state *st)
{
    st->first_byte_us = st->queue_us = st->connect_us = UINT32_MAX;
    relay_save_limits(&echo_of(s)->back, &st->legs[0]);
}

static int echo_limit(struct session *s, const struct session_state *st)
{
    return relay_limit(&echo_of(s)->back, &st->legs[0]);
}

static bool echo_finished(const struct session *s)
{
    const struct channel *client = &echo_of(s)->client;

    return !channel_input_pending(client) && channel_writable(client) &&
           channel_unsent_bytes(client) == 0;
}

const struct service_ops echo_ops = {.name = "echo",
                                     .descriptors = 1,
                                     .create = echo_create,
                                     .open = echo_open,
                                     .start = echo_start,
                                     .finished = echo_finished,
                                     .carry_over = echo_carry_over,
                                     .save = echo_save,
                                     .limit = echo_limit,
                                     .free = echo_free};
