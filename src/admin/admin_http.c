#include "admin/admin_http.h"

#include <errno.h>
#include <ev.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/admin_client.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "base/parse.h"
#include "engine/loop.h"
#include "engine/ready.h"

/*
 * Memory of a connection: half for the head of a request, the rest for a chunk of body or answer.
 */
#define HTTP_MEMORY_BYTES (32 * 1024)

/* Limit of libmicrohttpd, never reached: admin/admin_client has a lower one. */
#define HTTP_CONNECTIONS 4096

/*
 * Maximum bytes dropped of a body that is too long: many clients read an answer only after sending.
 */
#define HTTP_DROPPED_BYTES (1 << 20)

/* The status page may not load anything from other sites, or be in a frame (clickjacking). */
#define HTTP_POLICY                                                            \
    "default-src 'none'; connect-src 'self'; img-src data:; "                  \
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; " \
    "form-action 'none'; frame-ancestors 'none'"

struct admin_http {
    const struct admin_http_ops *ops;
    struct admin *admin;
    struct MHD_Daemon *daemon;
    struct ev_io io;
    struct timer again; /* the next MHD_run() without an event */
    bool started;
    bool running; /* within MHD_run() */
};

static void admin_http_schedule(struct admin_http *h, int64_t delay_ns)
{
    loop_cancel(h->admin->loop, &h->again);
    if (h->started)
        loop_schedule(h->admin->loop, &h->again, delay_ns);
}

static void admin_http_run(struct admin_http *h)
{
    unsigned long long ms;

    loop_set_activity(h->admin->loop, "admin request");
    h->running = true;
    if (MHD_run(h->daemon) != MHD_YES)
        log_error("admin: libmicrohttpd failed; requests can hang; its messages are at log_level "
                  "debug");
    h->running = false;
    if (MHD_get_timeout(h->daemon, &ms) == MHD_YES)
        admin_http_schedule(h, (int64_t)ms * NS_PER_MS);
}

static void admin_http_on_event(struct ev_loop *ev, struct ev_io *w, int revents)
{
    if (ready_in_order(ev, w, revents))
        admin_http_run(CONTAINER_OF(w, struct admin_http, io));
}

static void admin_http_run_again(struct task *t)
{
    admin_http_run(TIMER_OWNER(t, struct admin_http, again));
}

static const struct task_type admin_http_again_type = {.name = "admin request",
                                                       .run = admin_http_run_again};

/* ---- callbacks of libmicrohttpd ---- */

static void admin_http_log(void *cookie, const char *format, va_list args)
{
    char text[LOG_LINE_BYTES];

    (void)cookie;
    if (!log_wanted(LOG_LEVEL_DEBUG))
        return;
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\r\n")] = '\0';
    log_debug("admin: %s", text);
}

static struct admin_client *admin_http_client(struct MHD_Connection *c)
{
    return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void admin_http_on_connection(void *cookie, struct MHD_Connection *c, void **context,
                                     enum MHD_ConnectionNotificationCode code)
{
    struct admin_http *h = cookie;

    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *context = admin_client_begun(
            h->admin, MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    else
        admin_client_closed(*context);
}

/* Called with the first line of a request. Returns its context. */
static void *admin_http_on_uri(void *cookie, const char *uri, struct MHD_Connection *c)
{
    return ((struct admin_http *)cookie)->ops->begin(admin_http_client(c), uri);
}

static void admin_http_on_completed(void *cookie, struct MHD_Connection *c, void **context,
                                    enum MHD_RequestTerminationCode code)
{
    (void)c;
    (void)code;
    if (*context)
        ((struct admin_http *)cookie)->ops->end(*context);
    *context = NULL;
}

static const char *admin_http_field(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result admin_http_answer(struct admin_request *rq)
{
    struct admin_answer *answer = &rq->answer;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->n, answer->text, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result = MHD_NO;

    if (!response)
        return MHD_NO;
    answer->text = NULL; /* now owned by the response */
    if (MHD_add_response_header(response, "Content-Type", answer->type) == MHD_YES &&
        MHD_add_response_header(response, "Cache-Control", "no-store") == MHD_YES &&
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES &&
        MHD_add_response_header(response, "Content-Security-Policy", HTTP_POLICY) == MHD_YES &&
        (!answer->header ||
         MHD_add_response_header(response, answer->header, answer->value) == MHD_YES) &&
        (!(answer->is_last || admin_client_is_last(rq->client)) ||
         MHD_add_response_header(response, "Connection", "close") == MHD_YES))
        result = MHD_queue_response(rq->connection, answer->status, response);
    MHD_destroy_response(response);
    rq->queued = result == MHD_YES;
    return result;
}

/*
 * Must a refused request be answered at once, because its body is too long to read, or not sent
 * yet?
 */
static bool admin_http_is_endless(struct MHD_Connection *c)
{
    const char *length = admin_http_field(c, "Content-Length");
    uint64_t n;

    if (admin_http_field(c, "Expect"))
        return true;
    return length && parse_uint(&n, length, HTTP_DROPPED_BYTES) < 0;
}

/* What is wrong in the fields of a head. */
struct head_check {
    unsigned hosts, lengths, encodings, authorizations;
};

static enum MHD_Result admin_http_check_field(void *cookie, enum MHD_ValueKind kind,
                                              const char *name, const char *value)
{
    struct head_check *check = cookie;

    (void)kind;
    (void)value;
    check->hosts += strcasecmp(name, "Host") == 0;
    check->lengths += strcasecmp(name, "Content-Length") == 0;
    check->encodings += strcasecmp(name, "Transfer-Encoding") == 0;
    check->authorizations += strcasecmp(name, "Authorization") == 0;
    return MHD_YES;
}

/* Why is the head refused? Programs in between may read it otherwise (RFC 9112, section 11.2). */
static const char *admin_http_head_problem(struct MHD_Connection *c)
{
    struct head_check check = {.hosts = 0};

    MHD_get_connection_values(c, MHD_HEADER_KIND, admin_http_check_field, &check);
    if (check.hosts > 1)
        return "Host is there twice";
    if (check.authorizations > 1)
        return "Authorization is there twice";
    if (check.lengths > 1 || check.encodings > 1)
        return "Content-Length or Transfer-Encoding is there twice";
    return check.lengths + check.encodings > 1
               ? "Content-Length and Transfer-Encoding exclude each other"
               : NULL;
}

static enum MHD_Result admin_http_on_head(const struct admin_http *h, struct admin_request *rq,
                                          struct MHD_Connection *c, const char *method)
{
    const struct admin_head head = {.method = method,
                                    .host = admin_http_field(c, "Host"),
                                    .origin = admin_http_field(c, "Origin"),
                                    .authorization = admin_http_field(c, "Authorization"),
                                    .problem = admin_http_head_problem(c)};

    rq->connection = c;
    h->ops->head(rq, &head);
    if (rq->state == ADMIN_REQUEST_ANSWERED && (rq->answer.is_last || admin_http_is_endless(c)))
        return admin_http_answer(rq);
    return MHD_YES;
}

/* Called with the head, with each part of the body, at the end of the body, and after a resume. */
static enum MHD_Result admin_http_on_request(void *cookie, struct MHD_Connection *c,
                                             const char *path, const char *method,
                                             const char *version, const char *data, size_t *n,
                                             void **context)
{
    const struct admin_http *h = cookie;
    struct admin_request *rq = *context;

    (void)path;
    (void)version;
    if (!rq)
        return MHD_NO;
    if (!rq->connection)
        return admin_http_on_head(h, rq, c, method);
    if (*n > 0) {
        h->ops->body(rq, data, *n);
        *n = 0;
        return rq->body_len > HTTP_DROPPED_BYTES ? MHD_NO : MHD_YES;
    }
    if (rq->state == ADMIN_REQUEST_READING)
        h->ops->handle(rq);
    if (rq->state == ADMIN_REQUEST_ANSWERED)
        return admin_http_answer(rq);
    rq->suspended = true;
    MHD_suspend_connection(c);
    return MHD_YES;
}

/* ---- the loop's side ---- */

static int admin_http_fd(const struct admin_http *h)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    MUST(info);
    return info->epoll_fd;
}

int admin_http_create(struct admin_http **out, struct admin *a, const struct admin_http_ops *ops)
{
    struct admin_http *h = calloc(1, sizeof(*h));
    int rc = -ENOMEM;

    if (!h)
        return rc;
    h->admin = a;
    h->ops = ops;
    timer_init(&h->again, &admin_http_again_type);
    h->daemon = MHD_start_daemon(
        MHD_USE_ERROR_LOG | MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
        NULL, NULL, admin_http_on_request, h, MHD_OPTION_EXTERNAL_LOGGER, admin_http_log, h,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_MEMORY_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, 0u, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_URI_LOG_CALLBACK, admin_http_on_uri, h, MHD_OPTION_NOTIFY_COMPLETED,
        admin_http_on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, admin_http_on_connection, h,
        MHD_OPTION_END);
    if (!h->daemon)
        goto err_free;
    rc = loop_reserve_fd(a->loop, admin_http_fd(h));
    if (rc < 0)
        goto err_stop;
    *out = h;
    return 0;

err_stop:
    MHD_stop_daemon(h->daemon);
err_free:
    free(h);
    return rc;
}

void admin_http_start(struct admin_http *h)
{
    MUST(loop_is_current(h->admin->loop));
    ev_io_init(&h->io, admin_http_on_event, admin_http_fd(h), EV_READ);
    ev_io_start(loop_ev(h->admin->loop), &h->io);
    h->started = true;
}

void admin_http_add(struct admin_http *h, int fd, const struct address *peer)
{
    MUST(loop_is_current(h->admin->loop));
    if (MHD_add_connection(h->daemon, fd, &peer->u.sa, peer->len) == MHD_YES)
        admin_http_run(h);
}

void admin_http_resume(struct admin_http *h, struct admin_request *rq)
{
    MUST(loop_is_current(h->admin->loop) && rq->suspended);
    rq->suspended = false;
    MHD_resume_connection(rq->connection);
    if (h->running)
        admin_http_schedule(h, 0);
    else
        admin_http_run(h); /* at once: the loop may end before a later turn */
}

void admin_http_stop(struct admin_http *h)
{
    MUST(loop_is_current(h->admin->loop));
    if (h->started)
        ready_stop(loop_ev(h->admin->loop), &h->io);
    h->started = false;
}

void admin_http_destroy(struct admin_http *h)
{
    if (!h)
        return;
    MHD_stop_daemon(h->daemon);
    free(h);
}
