#include "balance/server_tls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "balance/upstream_server.h"
#include "base/clock.h"
#include "engine/loop.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/sock.h"
#include "tls/tls_profile.h"
#include "tls/tls_sessions.h"
#include "tls/tls_slot.h"
#include "tls/tls_stream.h"

/* Pause while too many handshakes wait for a thread. */
#define SERVER_TLS_RETRY_NS (20 * NS_PER_MS)

static struct server_tls *server_tls_of(struct tls_handler *h)
{
    return CONTAINER_OF(h, struct server_tls, handler);
}

/*
 * Domain of `_service._tcp.domain`: certificates are verified for it (RFC 6125, B.2), because SRV
 * targets come from unverified DNS.
 */
static const char *server_tls_service_domain(const char *address_text)
{
    const char *domain = strstr(address_text, "._tcp.");

    return address_text[0] == '_' && domain ? domain + strlen("._tcp.") : NULL;
}

/* The dot of an absolute name is not part of SNI or certificates (RFC 6066, section 3). */
static void server_tls_drop_dot(char *name)
{
    size_t len = strlen(name);

    if (len > 0 && name[len - 1] == '.')
        name[len - 1] = '\0';
}

const char *server_tls_name(char *name, const struct upstream_tls_conf *conf,
                            const char *address_text)
{
    const char *domain = server_tls_service_domain(address_text);
    char host[ADDRESS_HOST_BYTES]; /* one byte more, for the dot */
    uint16_t port;
    size_t len;

    if (conf->server_name) {
        snprintf(name, SERVER_NAME_BYTES, "%s", conf->server_name);
        return name;
    }
    if (domain)
        snprintf(host, sizeof(host), "%s", domain);
    else if (strchr("/@", address_text[0]) ||
             address_split_port(host, sizeof(host), address_text, &port) < 0)
        return NULL;
    if (host[0] == '[') {
        len = strcspn(host + 1, "]%"); /* without the zone of an IPv6 address */
        memmove(host, host + 1, len);
        host[len] = '\0';
    }
    server_tls_drop_dot(host);
    snprintf(name, SERVER_NAME_BYTES, "%.*s", SERVER_NAME_BYTES - 1, host);
    return name;
}

/* Get or create the session cache; NULL: no memory. */
static struct tls_sessions *server_tls_sessions(struct upstream_server *server)
{
    struct tls_sessions *old = atomic_load_explicit(&server->tls_sessions, memory_order_acquire);
    struct tls_sessions *ts;

    if (old || tls_sessions_create(&ts) < 0)
        return old;
    if (atomic_compare_exchange_strong_explicit(&server->tls_sessions, &old, ts,
                                                memory_order_acq_rel, memory_order_acquire))
        return ts;
    tls_sessions_release(ts);
    return old;
}

static struct ssl_st *server_tls_new_ssl(const struct upstream_tls_conf *conf,
                                         struct upstream_server *server,
                                         const struct server_tls_wish *wish,
                                         struct tls_handler_conf *handler)
{
    struct tls_profile *profile = tls_slot_current(conf->slot);
    char buffer[SERVER_NAME_BYTES];
    const char *name = server_tls_name(buffer, conf, server->conf->address_text);
    struct ssl_st *ssl = tls_profile_new_client(profile, name, wish->protocol);
    struct tls_sessions *sessions = ssl && wish->resumes ? server_tls_sessions(server) : NULL;

    handler->truncated_is_reset = tls_profile_truncated(profile) == TLS_TRUNCATED_RESET;
    tls_profile_release(profile);
    if (sessions)
        tls_sessions_use(sessions, ssl, name);
    return ssl;
}

static int64_t server_tls_due_ns(const struct server_tls *t)
{
    return loop_due_ns(t->loop, t->handler.began_at_ns, t->deadline_ns - t->handler.began_at_ns);
}

static void server_tls_arm(struct server_tls *t, int64_t at_ns)
{
    int64_t due_at_ns = server_tls_due_ns(t);

    if (at_ns > due_at_ns)
        at_ns = due_at_ns;
    loop_schedule(t->loop, &t->timer, at_ns - clock_now_ns());
}

static void server_tls_done(struct tls_handler *h, int error)
{
    struct server_tls *t = server_tls_of(h);

    loop_cancel(t->loop, &t->timer);
    if (error == -EBUSY)
        server_tls_arm(t, clock_now_ns() + SERVER_TLS_RETRY_NS);
    else
        t->done(t, error == -ETIMEDOUT && !t->is_late ? -EAGAIN : error);
}

static void server_tls_confirmed(struct tls_handler *h)
{
    struct server_tls *t = server_tls_of(h);

    if (t->confirmed)
        t->confirmed(t);
}

static void server_tls_failed(struct tls_handler *h)
{
    struct server_tls *t = server_tls_of(h);

    if (t->failed)
        t->failed(t);
}

static void server_tls_run_timer(struct task *task)
{
    struct server_tls *t = TIMER_OWNER(task, struct server_tls, timer);

    if (server_tls_due_ns(t) <= loop_heard_ns(t->loop)) {
        t->is_late = !t->handler.in_step && !t->handler.is_refused;
        tls_handler_give_up(&t->handler);
        return;
    }
    server_tls_arm(t, CLOCK_NEVER);
    if (t->handler.is_refused)
        tls_handler_retry(&t->handler);
}

/* No drop(): the owner aborts the channel. */
static const struct task_type server_tls_timer_type = {.name = "TLS with a server",
                                                       .run = server_tls_run_timer};

int server_tls_begin(struct server_tls *t, struct channel *ch, const struct upstream_tls_conf *conf,
                     struct upstream_server *server, const struct server_tls_wish *wish)
{
    struct tls_handler_conf handler = {.handshakes = wish->handshakes, .counters = wish->counters};
    struct ssl_st *ssl;
    int rc;

    *t = (struct server_tls){.loop = channel_net(ch)->loop,
                             .deadline_ns = wish->deadline_ns,
                             .done = wish->done,
                             .confirmed = wish->confirmed,
                             .failed = wish->failed};
    t->handler.done = server_tls_done;
    t->handler.confirmed = server_tls_confirmed;
    t->handler.failed = server_tls_failed;
    t->handler.deadline_ns = wish->deadline_ns;
    timer_init_silence(&t->timer, &server_tls_timer_type);
    ssl = server_tls_new_ssl(conf, server, wish, &handler);
    rc = ssl ? tls_handler_add(&t->handler, ch, ssl, &handler) : -ENOMEM;
    if (rc == 0)
        server_tls_arm(t, wish->deadline_ns);
    return rc;
}

void server_tls_adopt(struct server_tls *t, struct channel *ch,
                      const struct server_tls_taken *taken)
{
    *t = (struct server_tls){.loop = channel_net(ch)->loop};
    timer_init(&t->timer, &server_tls_timer_type);
    tls_handler_adopt(&t->handler, ch, taken->stream, &taken->conf);
    t->handler.confirmed = server_tls_confirmed;
    t->handler.failed = server_tls_failed;
}

struct server_tls_taken server_tls_take(struct server_tls *t)
{
    return (struct server_tls_taken){.stream = tls_handler_detach(&t->handler),
                                     .conf = t->handler.conf};
}

void server_tls_cancel(struct server_tls *t)
{
    loop_cancel(t->loop, &t->timer);
}

bool server_tls_error_is_ours(int error)
{
    return error == -EAGAIN || error == -ENOMEM || error == -ESHUTDOWN || sock_error_is_ours(error);
}

const char *server_tls_why(const struct server_tls *t, int error, char *text, size_t size)
{
    const struct tls_stream *stream = t->handler.stream; /* NULL: the channel has ended */
    char failure[TLS_FAILURE_TEXT_BYTES];

    switch (error) {
    case -EPROTO:
        snprintf(text, size, "TLS handshake failed: %s",
                 stream ? tls_failure_text(tls_stream_failure(stream), failure, sizeof(failure))
                        : strerror(EPROTO));
        break;
    case -ETIMEDOUT: snprintf(text, size, "TLS handshake not done within connect_timeout"); break;
    case -ENODATA:
    case -ECONNRESET:
        snprintf(text, size, "TLS handshake failed: the server closed the connection");
        break;
    case -EMSGSIZE: snprintf(text, size, "TLS handshake failed: its messages are too long"); break;
    case -EAGAIN: snprintf(text, size, "TLS handshake failed: it had no thread in time"); break;
    default: snprintf(text, size, "TLS handshake failed: %s", strerror(-error)); break;
    }
    return text;
}

const char *server_tls_failure(const struct server_tls *t, char *text, size_t size)
{
    char failure[TLS_FAILURE_TEXT_BYTES];

    snprintf(text, size, "TLS failed: %s",
             tls_failure_text(tls_stream_failure(t->handler.stream), failure, sizeof(failure)));
    return text;
}

const char *server_tls_alert(const struct server_tls *t)
{
    const struct tls_stream *stream = t->handler.stream;

    return stream ? tls_failure_alert(tls_stream_failure(stream)) : NULL;
}
