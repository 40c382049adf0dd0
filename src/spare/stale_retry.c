#include "spare/stale_retry.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "net/channel.h"
#include "net/handler.h"
#include "net/pipeline.h"
#include "net/sock.h"
#include "service/session.h"
#include "service/session_spares.h"
#include "spare/spare.h"

enum stale_retry_state { STALE_RETRY_ARMED, STALE_RETRY_LOST, STALE_RETRY_DONE };

struct stale_retry {
    struct session_spares_conf conf;
    struct handler client;
    struct handler server;
    enum stale_retry_state state;
    bool ended;         /* while LOST: end of file from the client */
    struct buffer held; /* while LOST: bytes from the client, to replay */
};

static bool stale_retry_may_replace(const struct stale_retry *t)
{
    const struct session *s = t->conf.session;

    return s->phase == SESSION_PHASE_OPEN && s->reason == SESSION_OPEN &&
           !channel_ended(t->conf.client);
}

static void stale_retry_end(struct stale_retry *t)
{
    t->state = STALE_RETRY_DONE;
    pipeline_remove(&t->conf.client->pipeline, &t->client);
    pipeline_remove(&t->conf.server->pipeline, &t->server);
}

/* replace() follows when the server's channel is closed. */
static void stale_retry_lose(struct stale_retry *t)
{
    t->state = STALE_RETRY_LOST;
    channel_stop_reading(t->conf.client, CHANNEL_STOP_RETRY);
    channel_abort(t->conf.server, 0);
}

static bool stale_retry_server_is_gone(const struct stale_retry *t)
{
    return channel_ended(t->conf.server) || sock_peek(t->conf.server->io.fd) == SOCK_ENDED;
}

/* May bytes or end of file be passed on? False: the spare connection is stale. */
static bool stale_retry_passed(struct stale_retry *t)
{
    if (t->state == STALE_RETRY_ARMED && stale_retry_server_is_gone(t) &&
        stale_retry_may_replace(t))
        stale_retry_lose(t);
    else if (t->state == STALE_RETRY_ARMED)
        stale_retry_end(t);
    return t->state == STALE_RETRY_DONE;
}

static struct stale_retry *stale_retry_of_client(struct handler *h)
{
    return CONTAINER_OF(h, struct stale_retry, client);
}

/* An earlier handler may pass on bytes although the channel is paused. */
static void stale_retry_client_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct stale_retry *t = stale_retry_of_client(h);

    if (stale_retry_passed(t))
        handler_read(h->next, data, len);
    else if (buffer_append(&t->held, data, len) < 0)
        session_abort(t->conf.session, SESSION_ERROR);
}

static void stale_retry_client_ended(struct handler *h, enum handler_end what, int error)
{
    struct stale_retry *t = stale_retry_of_client(h);

    if (what != HANDLER_EOF || stale_retry_passed(t))
        handler_ended(h->next, what, error);
    else
        t->ended = true;
}

static const struct handler_ops stale_retry_client_ops = {
    .name = "spare", .read = stale_retry_client_read, .ended = stale_retry_client_ended};

static struct stale_retry *stale_retry_of_server(struct handler *h)
{
    return CONTAINER_OF(h, struct stale_retry, server);
}

/* Drop the bytes of a stale connection: they only say why the server closed it. */
static void stale_retry_server_read(struct handler *h, const uint8_t *data, size_t len)
{
    if (stale_retry_passed(stale_retry_of_server(h)))
        handler_read(h->next, data, len);
}

static void stale_retry_replace(struct stale_retry *t)
{
    t->state = STALE_RETRY_LOST;
    channel_stop_reading(t->conf.client, CHANNEL_STOP_RETRY);
    session_leg_lost(t->conf.session, 1);
    spare_count_stale(t->conf.at);
    t->conf.replace(t->conf.session);
}

static void stale_retry_server_ended(struct handler *h, enum handler_end what, int error)
{
    struct stale_retry *t = stale_retry_of_server(h);

    if (!stale_retry_may_replace(t))
        handler_ended(h->next, what, error);
    else if (what == HANDLER_CLOSED)
        stale_retry_replace(t);
    else if (t->state == STALE_RETRY_ARMED)
        stale_retry_lose(t);
}

static const struct handler_ops stale_retry_server_ops = {
    .name = "spare", .read = stale_retry_server_read, .ended = stale_retry_server_ended};

int stale_retry_create(struct stale_retry **out, const struct session_spares_conf *conf)
{
    struct stale_retry *t = malloc(sizeof(*t));

    if (!t)
        return -ENOMEM;
    *t = (struct stale_retry){.conf = *conf, .state = STALE_RETRY_ARMED};
    buffer_init(&t->held);
    *out = t;
    return 0;
}

void stale_retry_destroy(struct stale_retry *t)
{
    buffer_clear(&t->held);
    free(t);
}

void stale_retry_begin(struct stale_retry *t)
{
    pipeline_add(&t->conf.client->pipeline, &t->client, &stale_retry_client_ops);
    pipeline_add(&t->conf.server->pipeline, &t->server, &stale_retry_server_ops);
}

bool stale_retry_lost(const struct stale_retry *t)
{
    return t->state == STALE_RETRY_LOST;
}

void stale_retry_replay(struct stale_retry *t)
{
    struct channel *client = t->conf.client;

    t->state = STALE_RETRY_DONE;
    pipeline_remove(&client->pipeline, &t->client);
    channel_resume_reading(client, CHANNEL_STOP_RETRY);
    if (buffer_bytes(&t->held) > 0)
        handler_read(t->client.next, buffer_front(&t->held), buffer_bytes(&t->held));
    buffer_clear(&t->held);
    if (t->ended && !channel_ended(client))
        handler_ended(t->client.next, HANDLER_EOF, 0);
}
