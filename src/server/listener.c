/* server/listener: see listener.h. */
#include "server/listener.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop_group.h"
#include "handlers/pipeline_template.h"
#include "handlers/proxy_protocol.h"
#include "limits/admission.h"
#include "limits/connection_limit.h"
#include "net/acceptor.h"
#include "net/sock.h"
#include "service/echo.h"
#include "service/mirror.h"
#include "service/proxy.h"
#include "service/session_access_log.h"
#include "stats/counters.h"

/* A listen socket; reuseport sockets share an address. */
struct listener_socket {
    struct listener *listener;
    const struct address *address;
    struct acceptor *acceptor;
    bool linked; /* we own the file of the unix socket */
    struct loop *boss;
    struct connection_limit_waiter waiter;
    struct task start;
    struct task stop;
};

struct listener {
    const struct listener_conf *conf;
    struct listener_env env;
    struct pipeline_template *plan; /* NULL: no handlers */
    struct service service;
    struct counters counters;
    struct log_limit log_limit;
    struct admission *admission;
    struct mirror_plan mirror;
    struct quota quota;
    _Atomic uint64_t waits; /* pauses at a connection limit */
    struct log_limit full_limit;
    struct proxy_protocol_gate proxies;
    struct throttle_plan throttle;
    struct throttle_shared bandwidth;
    unsigned n_sockets;
    struct listener_socket sockets[];
};

/* ---- boss loop ---- */

/* Log interval at the limit. */
#define LISTENER_FULL_LOG_NS (10 * NS_PER_S)

static void listener_log_full(struct listener *ls, const char *then)
{
    unsigned suppressed;

    if (log_allowed(&ls->full_limit, LISTENER_FULL_LOG_NS, &suppressed))
        log_warning("listen %s: %s is reached: %s%s", ls->conf->name,
                    connection_limit_full_of(ls->env.room, &ls->quota), then,
                    LOG_SUPPRESSED(suppressed));
}

/* Count a refused client, and close or reset it. */
static void listener_turn_away(const struct listener_socket *sock, int fd,
                               const struct address *peer, bool reset, enum session_reason reason)
{
    struct listener *ls = sock->listener;

    counters_began(&ls->counters);
    counters_ended(&ls->counters, reason, 0, 0);
    if (reset)
        sock_close_reset(fd);
    else
        close(fd);
    session_access_log_turned_away(&ls->service, peer, sock->address, reason);
}

/* A trusted proxy is not checked: the session checks its client. */
static enum admission_verdict listener_ask(struct listener *ls, struct admission_ticket *ticket,
                                           const struct address *peer, enum session_reason *reason,
                                           bool *preface)
{
    enum proxy_protocol_verdict expected = proxy_protocol_expect(ls->service.proxies, peer);

    *preface = expected == PROXY_PROTOCOL_READ;
    *reason = SESSION_LIMIT;
    switch (expected) {
    case PROXY_PROTOCOL_READ: return ADMISSION_ADMIT;
    case PROXY_PROTOCOL_REFUSE: return ADMISSION_RESET;
    case PROXY_PROTOCOL_PASS: break;
    }
    return admission_enter(ls->admission, ticket, peer, reason);
}

/* Check limits and ACL; turn away a refused client. */
static bool listener_lets_in(const struct listener_socket *sock, int fd, const struct address *peer,
                             struct admission_ticket *ticket, bool *preface)
{
    struct listener *ls = sock->listener;
    enum quota_over over = ls->conf->over_limit;
    enum admission_verdict verdict;
    enum session_reason reason;

    if (over != QUOTA_OVER_WAIT && connection_limit_enter(ls->env.room, &ls->quota) > 0) {
        listener_log_full(ls, over == QUOTA_OVER_CLOSE ? "the client is closed"
                                                       : "the client is reset");
        listener_turn_away(sock, fd, peer, over == QUOTA_OVER_RESET, SESSION_LIMIT);
        return false;
    }
    verdict = listener_ask(ls, ticket, peer, &reason, preface);
    if (verdict == ADMISSION_ADMIT)
        return true;
    connection_limit_withdraw(ls->env.room, &ls->quota);
    listener_turn_away(sock, fd, peer, verdict == ADMISSION_RESET, reason);
    return false;
}

static void listener_accepted(void *cookie, int fd, const struct address *peer)
{
    struct listener_socket *sock = cookie;
    struct listener *ls = sock->listener;
    struct admission_ticket ticket = {0};
    bool preface;
    struct session *s;

    if (!listener_lets_in(sock, fd, peer, &ticket, &preface))
        return;
    if (ls->service.ops->create(&s, &ls->service) < 0) {
        unsigned suppressed;

        if (log_allowed(&ls->log_limit, NS_PER_S, &suppressed))
            log_error("listen %s: no memory for a session; the client is reset%s", ls->conf->name,
                      LOG_SUPPRESSED(suppressed));
        admission_leave(&ticket);
        connection_limit_leave(ls->env.room, &ls->quota);
        sock_close_reset(fd);
        session_access_log_turned_away(&ls->service, peer, sock->address, SESSION_ERROR);
        return;
    }
    sock_options_set_accepted(fd, peer->u.sa.sa_family, &ls->conf->socket);
    s->client_fd = fd;
    s->peer = *peer;
    s->ticket = ticket;
    s->listen = sock->address;
    s->preface = preface;
    ls->env.accepted(ls->env.cookie, s);
}

/* Descriptors first: a place in the limit must be used at once. */
static int64_t listener_admit(void *cookie)
{
    struct listener_socket *sock = cookie;
    struct listener *ls = sock->listener;
    int64_t wait_ns = ls->env.admit(ls->env.cookie, ls->service.ops->descriptors);

    if (wait_ns != 0)
        return wait_ns;
    if (ls->conf->over_limit != QUOTA_OVER_WAIT)
        return 0;
    wait_ns = connection_limit_enter_or_wait(ls->env.room, &ls->quota, &sock->waiter);
    if (wait_ns > 0) {
        atomic_fetch_add_explicit(&ls->waits, 1, memory_order_relaxed);
        listener_log_full(ls, "new clients wait");
    }
    return wait_ns;
}

static void listener_accept_empty(void *cookie)
{
    struct listener_socket *sock = cookie;
    struct listener *ls = sock->listener;

    if (ls->conf->over_limit == QUOTA_OVER_WAIT)
        connection_limit_withdraw(ls->env.room, &ls->quota);
}

static void listener_again(struct connection_limit_waiter *w)
{
    acceptor_resume(CONTAINER_OF(w, struct listener_socket, waiter)->acceptor);
}

static const struct acceptor_ops listener_acceptor_ops = {
    .admit = listener_admit, .nobody = listener_accept_empty, .accepted = listener_accepted};

static void listener_run_start(struct task *t)
{
    struct listener_socket *sock = CONTAINER_OF(t, struct listener_socket, start);

    acceptor_start(sock->acceptor, sock->boss);
}

static void listener_drop_start(struct task *t)
{
    (void)t; /* the boss ended first: listener_destroy() closes the socket */
}

static const struct task_type listener_start_type = {
    .name = "listener start", .run = listener_run_start, .drop = listener_drop_start};

/* Before the socket closes: later the path may be another process's. */
static void listener_unlink(struct listener_socket *sock)
{
    if (sock->linked)
        sock_unlink(sock->address);
    sock->linked = false;
}

static void listener_run_stop(struct task *t)
{
    struct listener_socket *sock = CONTAINER_OF(t, struct listener_socket, stop);
    struct listener *ls = sock->listener;

    listener_unlink(sock);
    acceptor_drain(sock->acceptor);
    connection_limit_remove(ls->env.room, &sock->waiter);
    acceptor_stop(sock->acceptor);
    ls->env.stopped(ls->env.cookie);
}

static void listener_drop_stop(struct task *t)
{
    struct listener_socket *sock = CONTAINER_OF(t, struct listener_socket, stop);

    sock->listener->env.stopped(sock->listener->env.cookie);
}

static const struct task_type listener_stop_type = {
    .name = "listener stop", .run = listener_run_stop, .drop = listener_drop_stop};

/* ---- main ---- */

static int listener_open_socket(struct listener *ls, const struct address *a)
{
    struct listener_socket *sock = &ls->sockets[ls->n_sockets];
    struct sock_listen_conf conf = {.backlog = (int)ls->conf->backlog,
                                    .reuseport = ls->conf->reuseport > 1,
                                    .file = ls->conf->unix_file,
                                    .options = ls->conf->socket};
    char text[ADDRESS_TEXT_BYTES], name[ADDRESS_TEXT_BYTES + 64];
    struct acceptor_conf acceptor = {.name = name, .batch = ls->env.accept_batch};
    int fd, rc;

    address_format(text, sizeof(text), a);
    snprintf(name, sizeof(name), "listen %s: %s", ls->conf->name, text);
    rc = sock_listen(&fd, a, &conf);
    if (rc < 0) {
        log_error("%s: cannot listen: %s", name, strerror(-rc));
        return rc;
    }
    rc = acceptor_create(&sock->acceptor, &acceptor, fd, &listener_acceptor_ops, sock);
    if (rc < 0) {
        sock_unlink(a);
        close(fd);
        return rc;
    }
    sock->listener = ls;
    sock->linked = true;
    sock->address = a;
    sock->boss = loop_group_next(ls->env.boss);
    sock->start.type = &listener_start_type;
    sock->stop.type = &listener_stop_type;
    connection_limit_add(ls->env.room, &sock->waiter, sock->boss, listener_again);
    ls->n_sockets++;
    return 0;
}

static int listener_open_all(struct listener *ls)
{
    for (unsigned i = 0; i < ls->conf->n_addresses; i++) {
        const struct address *a = &ls->conf->addresses[i];
        unsigned copies = address_is_unix(a) ? 1 : ls->conf->reuseport;

        for (unsigned copy = 0; copy < copies; copy++) {
            int rc = listener_open_socket(ls, a);

            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static void listener_log_addresses(const struct listener *ls)
{
    char text[ADDRESS_TEXT_BYTES];

    for (unsigned i = 0; i < ls->conf->n_addresses; i++)
        log_info("listen %s: %s on %s%s%s", ls->conf->name, ls->service.ops->name,
                 address_format(text, sizeof(text), &ls->conf->addresses[i]),
                 ls->conf->upstream ? ", upstream " : "",
                 ls->conf->upstream ? ls->conf->upstream : "");
}

static void listener_warn_of_faults(const struct listener *ls)
{
    if (fault_handler_wanted(&ls->conf->pipeline.fault))
        log_warning(
            "listen %s: fault injection is on (fault_*): connections are disturbed on purpose",
            ls->conf->name);
}

static int listener_create_admission(struct listener *ls)
{
    struct admission_conf conf = {.listener = ls->conf->name,
                                  .access = &ls->conf->access,
                                  .on_deny = ls->conf->on_deny,
                                  .clients = ls->conf->clients,
                                  .over = ls->conf->over_limit};

    return admission_create(&ls->admission, &conf);
}

static void listener_init_service(struct listener *ls)
{
    const struct listener_conf *conf = ls->conf;

    ls->service = (struct service){.ops = conf->service == LISTENER_ECHO ? &echo_ops : &proxy_ops,
                                   .listener = conf->name,
                                   .counters = &ls->counters,
                                   .admission = ls->admission,
                                   .upstream = ls->env.upstream,
                                   .pipeline = ls->plan,
                                   .access_log = ls->env.access_log,
                                   .access_log_format = conf->access_log.format,
                                   .access_log_interval_ns = conf->access_log.interval_ns,
                                   .conf = &conf->session};
    if (conf->accept_proxy.mode != PROXY_PROTOCOL_OFF)
        ls->service.proxies = &ls->proxies;
    if (throttle_plan_init(&ls->throttle, &conf->bandwidth, &ls->bandwidth))
        ls->service.throttle = &ls->throttle;
    if (ls->env.mirror) {
        ls->mirror.upstream = ls->env.mirror;
        ls->mirror.buffer_bytes = conf->mirror_buffer_bytes;
        ls->service.mirror = &ls->mirror;
    }
    if (ls->service.upstream)
        ls->service.upstream_idle_timeout_ns = ls->service.upstream->conf->idle_timeout_ns;
}

int listener_create(struct listener **out, const struct listener_conf *conf,
                    const struct listener_env *env)
{
    unsigned max_sockets = conf->n_addresses * conf->reuseport;
    struct listener *ls = calloc(1, sizeof(*ls) + max_sockets * sizeof(ls->sockets[0]));
    int rc;

    if (!ls)
        return -ENOMEM;
    ls->conf = conf;
    ls->env = *env;
    quota_init(&ls->quota, &conf->quota);
    ls->proxies = (struct proxy_protocol_gate){.conf = &conf->accept_proxy, .listener = conf->name};
    rc = listener_create_admission(ls);
    if (rc == 0 && env->mirror)
        rc = mirror_counters_create(&ls->mirror.counters);
    if (rc == 0 && pipeline_template_wanted(&conf->pipeline))
        rc = pipeline_template_create(&ls->plan, &conf->pipeline, conf->memory, env->executor);
    if (rc == 0) {
        listener_init_service(ls);
        rc = listener_open_all(ls);
    }
    if (rc < 0) {
        listener_destroy(ls);
        return rc;
    }
    listener_log_addresses(ls);
    listener_warn_of_faults(ls);
    *out = ls;
    return 0;
}

int listener_start(struct listener *ls)
{
    for (unsigned i = 0; i < ls->n_sockets; i++) {
        struct listener_socket *sock = &ls->sockets[i];
        int rc = loop_submit(sock->boss, LOOP_CONTROL, &sock->start);

        if (rc < 0)
            return rc;
    }
    return 0;
}

void listener_stop(struct listener *ls)
{
    for (unsigned i = 0; i < ls->n_sockets; i++) {
        struct listener_socket *sock = &ls->sockets[i];

        if (loop_submit(sock->boss, LOOP_CONTROL, &sock->stop) < 0)
            listener_drop_stop(&sock->stop);
    }
}

void listener_left(const struct session *s)
{
    struct listener *ls = CONTAINER_OF(s->service, struct listener, service);

    connection_limit_leave(ls->env.room, &ls->quota);
}

unsigned listener_sockets(const struct listener *ls)
{
    return ls->n_sockets;
}

void listener_log_stats(const struct listener *ls)
{
    uint64_t waits = atomic_load_explicit(&ls->waits, memory_order_relaxed);

    counters_log(&ls->counters, "listen", ls->conf->name);
    admission_log_stats(ls->admission);
    if (ls->service.mirror)
        mirror_log_stats(ls->mirror.counters, ls->conf->name);
    if (ls->plan)
        pipeline_template_log_stats(ls->plan, ls->conf->name);
    if (waits > 0)
        log_notice("stats listen %s limit_waits=%" PRIu64, ls->conf->name, waits);
}

void listener_destroy(struct listener *ls)
{
    if (!ls)
        return;
    for (unsigned i = 0; i < ls->n_sockets; i++) {
        listener_unlink(&ls->sockets[i]);
        acceptor_stop(ls->sockets[i].acceptor);
        acceptor_destroy(ls->sockets[i].acceptor);
    }
    admission_destroy(ls->admission);
    if (ls->mirror.counters)
        mirror_counters_release(ls->mirror.counters);
    pipeline_template_release(ls->plan);
    free(ls);
}
