#include "spare/spare_tls.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "balance/server_tls.h"
#include "balance/upstream_server.h"
#include "engine/loop.h"
#include "net/channel.h"
#include "net/sock.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"

struct spare_tls {
    alignas(CACHE_LINE_BYTES) struct channel channel;
    struct handler tail;
    struct server_tls tls;
    struct spare_tls_conf conf;  /* event NULL: closed or taken */
    struct tls_profile *profile; /* a reference */
    char name[SERVER_NAME_BYTES];
    struct task end;
    bool is_open;
    bool has_spoken;
};

static struct spare_tls *spare_tls_of(struct handler *h)
{
    return CONTAINER_OF(h, struct spare_tls, tail);
}

static void spare_tls_tell(struct spare_tls *t, enum spare_tls_event what, const char *why)
{
    if (t->conf.event)
        t->conf.event(t->conf.cookie, what, why);
}

static void spare_tls_free(struct spare_tls *t)
{
    tls_profile_release(t->profile);
    free(t);
}

static void spare_tls_run_end(struct task *task)
{
    spare_tls_free(CONTAINER_OF(task, struct spare_tls, end));
}

static const struct task_type spare_tls_end_type = {
    .name = "end of a spare connection", .run = spare_tls_run_end, .drop = spare_tls_run_end};

static void spare_tls_on_event(struct handler *h)
{
    (void)h;
}

static void spare_tls_on_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct spare_tls *t = spare_tls_of(h);

    (void)data;
    (void)len;
    if (t->has_spoken)
        return;
    t->has_spoken = true;
    spare_tls_tell(t, SPARE_TLS_SPOKE, NULL);
}

static void spare_tls_on_end(struct handler *h, enum handler_end what, int error)
{
    struct spare_tls *t = spare_tls_of(h);

    if (t->is_open)
        spare_tls_tell(t, SPARE_TLS_ENDED, NULL);
    else
        spare_tls_tell(t, SPARE_TLS_FAILED, strerror(error < 0 ? -error : ECONNRESET));
    spare_tls_close(t); /* does nothing if event() has closed ${t} */
    if (what == HANDLER_CLOSED)
        spare_tls_free(t);
}

static const struct handler_ops spare_tls_ops = {.name = "spare connection",
                                                 .active = spare_tls_on_event,
                                                 .read = spare_tls_on_read,
                                                 .ended = spare_tls_on_end,
                                                 .writable = spare_tls_on_event};

static void spare_tls_confirmed(struct server_tls *tls)
{
    spare_tls_tell(CONTAINER_OF(tls, struct spare_tls, tls), SPARE_TLS_CONFIRMED, NULL);
}

/* A server that refuses the handshake behind it would refuse the next one too. */
static void spare_tls_failed(struct server_tls *tls)
{
    struct spare_tls *t = CONTAINER_OF(tls, struct spare_tls, tls);
    char why[SERVER_TLS_WHY_BYTES];

    if (!tls->handler.is_confirmed)
        spare_tls_tell(t, SPARE_TLS_FAILED, server_tls_failure(tls, why, sizeof(why)));
}

static void spare_tls_done(struct server_tls *tls, int error)
{
    struct spare_tls *t = CONTAINER_OF(tls, struct spare_tls, tls);
    char why[SERVER_TLS_WHY_BYTES];

    if (error < 0) {
        spare_tls_tell(t, SPARE_TLS_FAILED, server_tls_why(tls, error, why, sizeof(why)));
        return;
    }
    t->is_open = true;
    spare_tls_tell(t, SPARE_TLS_OPENED, NULL);
    if (tls->handler.is_confirmed)
        spare_tls_tell(t, SPARE_TLS_CONFIRMED, NULL);
    tls_handler_release(&tls->handler);
}

int spare_tls_begin(struct spare_tls **out, const struct spare_tls_conf *conf, int fd)
{
    const struct server_tls_wish wish = {.deadline_ns = conf->deadline_ns,
                                         .handshakes = conf->handshakes,
                                         .resumes = true,
                                         .counters = &conf->server->tls,
                                         .done = spare_tls_done,
                                         .confirmed = spare_tls_confirmed,
                                         .failed = spare_tls_failed};
    struct spare_tls *t = aligned_alloc(alignof(struct spare_tls), sizeof(*t));

    if (!t)
        return -ENOMEM;
    memset(t, 0, sizeof(*t));
    t->conf = *conf;
    t->end.type = &spare_tls_end_type;
    (void)server_tls_name(t->name, conf->tls, conf->server->conf->address_text);
    channel_init(&t->channel, conf->net, fd);
    pipeline_init(&t->channel.pipeline, &t->channel, &t->tail, &spare_tls_ops);
    t->profile = tls_slot_current(conf->tls->slot); /* taken first: not newer than that of t->tls */
    if (server_tls_begin(&t->tls, &t->channel, conf->tls, conf->server, &wish) < 0) {
        spare_tls_free(t);
        return -ENOMEM;
    }
    *out = t; /* event() may close it */
    channel_start(&t->channel);
    return 0;
}

bool spare_tls_fits(const struct spare_tls *t, const struct upstream_tls_conf *conf)
{
    struct tls_profile *now = conf->slot ? tls_slot_current(conf->slot) : NULL;
    bool is_same = now && (now == t->profile || tls_profile_same(now, t->profile));
    char buffer[SERVER_NAME_BYTES] = "";

    tls_profile_release(now);
    (void)server_tls_name(buffer, conf, t->conf.server->conf->address_text);
    return is_same && strcmp(buffer, t->name) == 0;
}

bool spare_tls_is_silent(const struct spare_tls *t)
{
    return t->is_open && !t->has_spoken && !channel_ended(&t->channel) &&
           channel_pending_bytes(&t->channel) == 0 && sock_peek(t->channel.io.fd) == SOCK_SILENT;
}

int spare_tls_take(struct spare_tls *t, struct server_tls_taken *out)
{
    int fd = channel_detach(&t->channel);

    *out = server_tls_take(&t->tls);
    t->conf.event = NULL;
    loop_reap(t->conf.net->loop, &t->end);
    return fd;
}

void spare_tls_close(struct spare_tls *t)
{
    if (!t || !t->conf.event)
        return;
    t->conf.event = NULL;
    server_tls_cancel(&t->tls);
    if (t->is_open)
        channel_shutdown_write(&t->channel); /* sends close_notify */
    channel_end(&t->channel, CHANNEL_END_NOW);
}
