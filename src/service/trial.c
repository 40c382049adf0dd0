/* service/trial: see trial.h. Everything here runs on the loop of the session. */
#include "service/trial.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "net/handler.h"
#include "net/pipeline.h"

enum trial_state { TRIAL_ON, TRIAL_LOST, TRIAL_OVER };

struct trial {
    struct trial_conf conf;
    struct handler client; /* in the pipelines of these */
    struct handler server;
    enum trial_state state;
    bool ended;         /* LOST: the client has sent end of file */
    struct buffer held; /* LOST: what it had sent before */
};

/* What ends for other reasons ends as ever. */
static bool trial_may_replace(const struct trial *t)
{
    const struct session *s = t->conf.session;

    return !s->closing && s->reason == SESSION_OPEN && !channel_ended(t->conf.client);
}

static void trial_end(struct trial *t)
{
    t->state = TRIAL_OVER;
    pipeline_remove(&t->conf.client->pipeline, &t->client);
    pipeline_remove(&t->conf.server->pipeline, &t->server);
}

/* The server has ended; the rest follows when its channel is closed. */
static void trial_lose(struct trial *t)
{
    t->state = TRIAL_LOST;
    channel_stop_reading(t->conf.client, CHANNEL_STOP_RETRY);
    channel_abort(t->conf.server, 0);
}

/* Something is to move for the first time. False: the server is gone, so that it cannot. */
static bool trial_passed(struct trial *t)
{
    if (t->state == TRIAL_ON && channel_peek(t->conf.server) == SOCK_ENDED && trial_may_replace(t))
        trial_lose(t);
    else if (t->state == TRIAL_ON)
        trial_end(t);
    return t->state == TRIAL_OVER;
}

/* ---- in the client's pipeline ---- */

static struct trial *trial_of_client(struct handler *h)
{
    return CONTAINER_OF(h, struct trial, client);
}

/* A handler before this one may say much at once, also when the channel is paused. */
static void trial_client_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct trial *t = trial_of_client(h);

    if (trial_passed(t))
        handler_read(h->next, data, len);
    else if (buffer_append(&t->held, data, len) < 0)
        session_abort(t->conf.session, SESSION_ERROR);
}

static void trial_client_eof(struct handler *h)
{
    struct trial *t = trial_of_client(h);

    if (trial_passed(t))
        handler_eof(h->next);
    else
        t->ended = true;
}

static const struct handler_ops trial_client_ops = {
    .name = "spare", .read = trial_client_read, .eof = trial_client_eof};

/* ---- in the server's ---- */

static struct trial *trial_of_server(struct handler *h)
{
    return CONTAINER_OF(h, struct trial, server);
}

/* Bytes with an end right behind them say why it closes a connection on which nothing came: nothing for the client. */
static void trial_server_read(struct handler *h, const uint8_t *data, size_t len)
{
    if (trial_passed(trial_of_server(h)))
        handler_read(h->next, data, len);
}

static void trial_server_eof(struct handler *h)
{
    struct trial *t = trial_of_server(h);

    if (!trial_may_replace(t))
        handler_eof(h->next);
    else if (t->state == TRIAL_ON)
        trial_lose(t);
}

static void trial_server_broken(struct handler *h, int error)
{
    struct trial *t = trial_of_server(h);

    if (!trial_may_replace(t))
        handler_broken(h->next, error);
    else if (t->state == TRIAL_ON)
        trial_lose(t);
}

static void trial_server_closed(struct handler *h, int error)
{
    struct trial *t = trial_of_server(h);

    if (!trial_may_replace(t)) {
        handler_closed(h->next, error);
        return;
    }
    t->state = TRIAL_LOST;
    channel_stop_reading(t->conf.client, CHANNEL_STOP_RETRY);
    session_leg_lost(t->conf.session, 1);
    t->conf.replace(t->conf.session);
}

static const struct handler_ops trial_server_ops = {.name = "spare",
                                                    .read = trial_server_read,
                                                    .eof = trial_server_eof,
                                                    .broken = trial_server_broken,
                                                    .closed = trial_server_closed};

/* ---- life ---- */

int trial_create(struct trial **out, const struct trial_conf *conf)
{
    struct trial *t = malloc(sizeof(*t));

    if (!t)
        return -ENOMEM;
    *t = (struct trial){.conf = *conf, .state = TRIAL_ON};
    buffer_init(&t->held);
    *out = t;
    return 0;
}

void trial_destroy(struct trial *t)
{
    if (!t)
        return;
    buffer_clear(&t->held);
    free(t);
}

void trial_begin(struct trial *t)
{
    pipeline_add(&t->conf.client->pipeline, &t->client, &trial_client_ops);
    pipeline_add(&t->conf.server->pipeline, &t->server, &trial_server_ops);
}

bool trial_lost(const struct trial *t)
{
    return t && t->state == TRIAL_LOST;
}

void trial_replay(struct trial *t)
{
    struct channel *client = t->conf.client;

    t->state = TRIAL_OVER;
    pipeline_remove(&client->pipeline, &t->client);
    channel_read_on(client, CHANNEL_STOP_RETRY);
    if (buffer_bytes(&t->held) > 0)
        handler_read(t->client.next, buffer_front(&t->held), buffer_bytes(&t->held));
    buffer_clear(&t->held);
    if (t->ended && !channel_ended(client))
        handler_eof(t->client.next);
}
