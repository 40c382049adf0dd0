#include "admin/admin_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin_http.h"
#include "admin/admin_settings.h"
#include "admin/admin_socket.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "engine/loop.h"
#include "net/sock.h"

/* Time until a connection above max_connections is closed. */
#define EXTRA_NS (1 * NS_PER_S)

static const char too_late[] = "HTTP/1.1 408 Request Timeout\r\n"
                               "Content-Type: application/json\r\n"
                               "Content-Length: 36\r\n"
                               "Connection: close\r\n"
                               "\r\n"
                               "{\"error\":\"request_timeout is over\"}\n";

static const char no_place[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "Content-Type: application/json\r\n"
                               "Content-Length: 39\r\n"
                               "Connection: close\r\n"
                               "\r\n"
                               "{\"error\":\"max_connections is reached\"}\n";

static struct admin_places *admin_client_places(struct admin *a, bool is_unix)
{
    return is_unix ? &a->unix_places : &a->tcp;
}

static void admin_client_cut(struct admin_client *c)
{
    if (c->cut)
        return;
    c->cut = true;
    admin_client_places(c->admin, c->is_unix)->n_cut++;
    (void)shutdown(c->fd, SHUT_RDWR);
}

/* Close ${c}, which gets no answer of libmicrohttpd, behind ${answer}. */
static void admin_client_cut_behind(struct admin_client *c, const char *answer)
{
    (void)send(c->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
    admin_client_cut(c);
}

/* Send 408 without libmicrohttpd, which cannot answer a request that it has not read completely. */
static void admin_client_run_deadline(struct task *t)
{
    struct admin_client *c = TIMER_OWNER(t, struct admin_client, deadline);
    bool waits = c->request ? !c->request->queued : c->n_requests == 0;

    if (waits)
        admin_client_cut_behind(c, too_late);
    else
        admin_client_cut(c);
}

/* No drop(): admin_http_destroy() closes the connection. */
static const struct task_type admin_client_deadline_type = {.name = "admin deadline",
                                                            .run = admin_client_run_deadline};

static void admin_client_set_name(struct admin_client *c, const struct address *peer)
{
    struct ucred cred = {.pid = 0};
    socklen_t len = sizeof(cred);

    c->is_unix = address_is_unix(peer);
    if (!c->is_unix)
        address_format(c->name, sizeof(c->name), peer);
    else if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
        snprintf(c->name, sizeof(c->name), "uid %ld pid %ld", (long)cred.uid, (long)cred.pid);
    else
        snprintf(c->name, sizeof(c->name), "unix");
}

/* Number of connections that are not about to be closed. */
static unsigned admin_client_count(struct admin *a, bool is_unix)
{
    const struct admin_places *p = admin_client_places(a, is_unix);

    return p->n - p->n_cut;
}

/* Has the client, over TCP, not shown the token yet, and no answer that is being made? */
static bool admin_client_is_unproven(const struct admin_client *c)
{
    return !c->is_unix && !c->has_token && !c->cut &&
           (!c->request || c->request->state == ADMIN_REQUEST_READING);
}

/* Return the oldest one, but not ${but}; NULL: none. */
static struct admin_client *admin_client_oldest_unproven(struct admin *a,
                                                         const struct admin_client *but)
{
    list_for_each (node, &a->clients) {
        struct admin_client *c = LIST_ENTRY(node, struct admin_client, link);

        if (c != but && admin_client_is_unproven(c))
            return c;
    }
    return NULL;
}

bool admin_client_may_accept(struct admin *a, bool is_unix)
{
    if (admin_client_places(a, is_unix)->n < admin_settings_max_open(a))
        return true;
    return !is_unix && a->tcp.n_cut == 0 && admin_client_oldest_unproven(a, NULL);
}

bool admin_client_take_place(struct admin_client *c)
{
    struct admin_client *other = admin_client_oldest_unproven(c->admin, c);

    if (c->is_unix || !other)
        return false;
    admin_client_cut_behind(other, no_place);
    c->extra = false;
    admin_client_restart(c);
    return true;
}

static bool admin_client_is_idle(const struct admin_client *c)
{
    return !c->request && c->n_requests > 0 && !c->cut;
}

/* Close the connection that has been idle for longest; false: no connection is idle. */
static bool admin_client_close_idlest(struct admin *a, bool is_unix)
{
    list_for_each (node, &a->clients) {
        struct admin_client *c = LIST_ENTRY(node, struct admin_client, link);

        if (!admin_client_is_idle(c) || c->is_unix != is_unix)
            continue;
        admin_client_cut(c);
        return true;
    }
    return false;
}

static void admin_client_free(struct admin_client *c)
{
    struct admin *a = c->admin;
    struct admin_places *p = admin_client_places(a, c->is_unix);

    admin_client_wait(c);
    list_remove(&c->link);
    p->n--;
    p->n_cut -= c->cut;
    free(c);
    if (!loop_is_current(a->loop))
        return;
    admin_socket_resume_all(a);
    admin_client_look_finished(a);
}

/* All places are taken, even those above max_connections: close the oldest without the token. */
static void admin_client_make_place(struct admin *a)
{
    struct admin_client *other = admin_client_oldest_unproven(a, NULL);

    if (other)
        admin_client_cut_behind(other, no_place);
}

void admin_client_accepted(struct admin *a, int fd, const struct address *peer)
{
    struct admin_client *c = calloc(1, sizeof(*c));

    MUST(loop_is_current(a->loop));
    if (!c || sock_local(&c->local, fd) < 0) {
        free(c);
        close(fd);
        return;
    }
    c->admin = a;
    c->fd = fd;
    timer_init_silence(&c->deadline, &admin_client_deadline_type);
    admin_client_set_name(c, peer);
    c->extra = admin_client_count(a, c->is_unix) >= admin_settings_max_connections(a) &&
               !admin_client_close_idlest(a, c->is_unix);
    if (!c->is_unix && a->tcp.n >= admin_settings_max_open(a))
        admin_client_make_place(a);
    list_append(&a->clients, &c->link);
    admin_client_places(a, c->is_unix)->n++;
    admin_client_restart(c);
    admin_http_add(a->http, fd, peer);
    /*
     * If libmicrohttpd had no memory for the connection, free the client. If the connection has
     * ended at once, the client is freed already.
     */
    list_for_each (node, &a->clients) {
        c = LIST_ENTRY(node, struct admin_client, link);
        if (c->begun || c->fd != fd)
            continue;
        admin_client_free(c);
        break;
    }
}

struct admin_client *admin_client_begun(struct admin *a, int fd)
{
    list_for_each (node, &a->clients) {
        struct admin_client *c = LIST_ENTRY(node, struct admin_client, link);

        if (c->begun || c->fd != fd)
            continue;
        c->begun = true;
        return c;
    }
    MUST(!"a connection that admin_client_accepted() knows");
    return NULL;
}

void admin_client_closed(struct admin_client *c)
{
    MUST(!c->request);
    admin_client_free(c);
}

void admin_client_restart(struct admin_client *c)
{
    struct admin *a = c->admin;
    int64_t timeout_ns = admin_settings_request_timeout_ns(a);

    admin_client_wait(c);
    if (loop_state(a->loop) == LOOP_STARTED)
        loop_schedule(a->loop, &c->deadline,
                      c->extra ? clock_sooner(timeout_ns, EXTRA_NS) : timeout_ns);
}

void admin_client_wait(struct admin_client *c)
{
    if (loop_is_current(c->admin->loop))
        loop_cancel(c->admin->loop, &c->deadline);
}

bool admin_client_is_last(const struct admin_client *c)
{
    return c->extra || c->admin->closing;
}

void admin_client_look_finished(struct admin *a)
{
    if (a->closing && a->tcp.n + a->unix_places.n == 0)
        promise_succeed(&a->finished);
}

void admin_client_close_idle(struct admin *a)
{
    while (admin_client_close_idlest(a, false) || admin_client_close_idlest(a, true))
        ;
}

unsigned admin_client_pending(const struct admin *a)
{
    unsigned n = 0;

    list_for_each (node, &a->clients) {
        const struct admin_client *c = LIST_ENTRY(node, struct admin_client, link);

        n += c->request && c->request->state == ADMIN_REQUEST_HANDLING;
    }
    return n;
}
