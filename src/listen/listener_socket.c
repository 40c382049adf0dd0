#include "listen/listener_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/lock.h"
#include "engine/loop.h"
#include "handlers/proxy_protocol.h"
#include "limits/admission.h"
#include "listen/listener_generation.h"
#include "listen/listener_internal.h"
#include "listen/listener_socket_internal.h"
#include "listen/listeners.h"
#include "listen/socket_store.h"
#include "net/acceptor.h"
#include "net/descriptor_budget.h"
#include "service/session.h"
#include "service/session_access_log.h"
#include "service/session_preface.h"

/* ---- loop that accepts ---- */

/* Interval of log lines while a connection limit is reached. */
#define LISTENER_SOCKET_FULL_LOG_NS (10 * NS_PER_S)

static struct listener_generation *listener_socket_generation(const struct listener_socket *sock)
{
    return atomic_load(&sock->generation); /* see note: current */
}

static void listener_socket_log_full(struct listener *ls, const char *then)
{
    unsigned suppressed;

    if (log_allowed(&ls->full_limit, LISTENER_SOCKET_FULL_LOG_NS, &suppressed))
        log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING, "listen %s: %s is reached: %s%s", ls->name,
                        connection_limit_full_of(ls->connection_limit, &ls->quota), then,
                        LOG_SUPPRESSED(suppressed));
}

static void listener_socket_turn_away(const struct listener_socket *sock, int fd,
                                      const struct address *peer, bool reset,
                                      enum session_reason reason)
{
    const struct listener_generation *gen = sock->admitted;

    counters_began(&gen->listener->counters);
    counters_ended(&gen->listener->counters, reason, 0, 0);
    if (reset)
        sock_close_reset(fd);
    else
        close(fd);
    session_access_log_turned_away(&gen->service, peer, sock->address, reason);
}

/* Admit a trusted proxy unchecked: the session checks the client of the PROXY header. */
static enum admission_verdict listener_socket_ask(const struct listener_generation *gen,
                                                  struct admission_ticket *ticket,
                                                  const struct address *peer,
                                                  enum session_reason *reason, bool *header)
{
    enum proxy_protocol_verdict expected = proxy_protocol_expect(gen->service.proxies, peer);

    *header = expected == PROXY_PROTOCOL_READ;
    *reason = SESSION_LIMIT;
    switch (expected) {
    case PROXY_PROTOCOL_READ: return ADMISSION_ADMIT;
    case PROXY_PROTOCOL_REFUSE:
        admission_offend(gen->admission, peer, BAN_OFFENCE_HEADER);
        return ADMISSION_RESET;
    case PROXY_PROTOCOL_PASS: break;
    }
    return admission_enter(gen->admission, ticket, peer, reason);
}

static bool listener_socket_lets_in(const struct listener_socket *sock, int fd,
                                    const struct address *peer, struct admission_ticket *ticket,
                                    bool *header)
{
    const struct listener_generation *gen = sock->admitted;
    struct listener *ls = gen->listener;
    enum quota_over over = gen->conf.over_limit;
    enum admission_verdict verdict;
    enum session_reason reason;

    if (!connection_limit_is_first(gen->conf.over_limit) &&
        connection_limit_enter(ls->connection_limit, &ls->quota) > 0) {
        listener_socket_log_full(ls, over == QUOTA_OVER_CLOSE ? "the client is closed"
                                                              : "the client is reset");
        listener_socket_turn_away(sock, fd, peer, over == QUOTA_OVER_RESET, SESSION_LIMIT);
        return false;
    }
    verdict = listener_socket_ask(gen, ticket, peer, &reason, header);
    if (verdict == ADMISSION_ADMIT) {
        if (sock->is_over) {
            atomic_fetch_add_explicit(&ls->served_over, 1, memory_order_relaxed);
            listener_socket_log_full(ls, "the client is served, as over_limit = log");
        }
        return true;
    }
    connection_limit_undo(ls->connection_limit, &ls->quota, sock->is_over);
    listener_socket_turn_away(sock, fd, peer, verdict == ADMISSION_RESET, reason);
    return false;
}

/* The cheapest way: no session, no line in a log. */
static void listener_socket_refuse_banned(const struct listener_socket *sock, int fd)
{
    struct listener *ls = sock->admitted->listener;

    if (connection_limit_is_first(sock->admitted->conf.over_limit))
        connection_limit_undo(ls->connection_limit, &ls->quota, sock->is_over);
    sock_close_reset(fd);
}

static void listener_socket_accepted(void *cookie, int fd, const struct address *peer)
{
    struct listener_socket *sock = cookie;
    struct listener_generation *gen = sock->admitted;
    struct listener *ls = gen->listener;
    struct admission_ticket ticket = {0};
    bool header;
    struct session *s;

    if (admission_refuses(gen->admission, peer)) {
        listener_socket_refuse_banned(sock, fd);
        return;
    }
    if (!listener_socket_lets_in(sock, fd, peer, &ticket, &header))
        return;
    if (gen->service.ops->create(&s, &gen->service) < 0) {
        unsigned suppressed;

        if (log_allowed(&ls->memory_limit, NS_PER_S, &suppressed))
            log_event_again(LOG_LISTENER, LOG_LEVEL_ERROR,
                            "listen %s: no memory for a session; the client is reset%s", ls->name,
                            LOG_SUPPRESSED(suppressed));
        admission_leave(&ticket);
        connection_limit_leave(ls->connection_limit, &ls->quota);
        sock_close_reset(fd);
        session_access_log_turned_away(&gen->service, peer, sock->address, SESSION_ERROR);
        return;
    }
    (void)listener_generation_hold(gen); /* until listener_left() */
    sock_options_set_accepted(fd, peer->u.sa.sa_family, &gen->conf.socket);
    s->client_fd = fd;
    s->peer = *peer;
    s->ticket = ticket;
    s->listen = sock->address;
    session_preface_expect(s, header);
    sock->env->accepted(sock->env->cookie, s);
}

static void listener_socket_give_back(const struct listener_socket *sock, struct listener *ls)
{
    if (!sock->draining)
        hold_give_back(&ls->hold);
}

/*
 * Ask for descriptors first: a slot in the connection limit must be used at once. Try again if the
 * generation was replaced meanwhile: the change may have woken waiters before this one waited.
 */
static int64_t listener_socket_admit(void *cookie)
{
    struct listener_socket *sock = cookie;
    const struct listeners_env *env = sock->env;
    struct listener_generation *gen = listener_socket_generation(sock);
    struct listener *ls = gen->listener;
    int64_t wait_ns = env->admit(env->cookie, gen->service.ops->descriptors);

    sock->admitted = gen;
    sock->is_over = false;
    if (wait_ns == 0 && !sock->draining)
        wait_ns = connection_limit_pass_or_wait(ls->connection_limit, &ls->hold, &sock->waiter);
    if (wait_ns > 0 && listener_socket_generation(sock) != gen)
        return 1;
    if (wait_ns != 0 || !connection_limit_is_first(gen->conf.over_limit))
        return wait_ns;
    wait_ns = connection_limit_begin(ls->connection_limit, &ls->quota, &sock->waiter,
                                     gen->conf.over_limit, &sock->is_over);
    if (wait_ns > 0) {
        listener_socket_give_back(sock, ls);
        atomic_fetch_add_explicit(&ls->waits, 1, memory_order_relaxed);
        listener_socket_log_full(ls, "new clients wait");
        if (listener_socket_generation(sock) != gen)
            return 1;
    }
    return wait_ns;
}

static void listener_socket_accept_empty(void *cookie)
{
    struct listener_socket *sock = cookie;
    const struct listener_generation *gen = sock->admitted;
    struct listener *ls = gen->listener;

    listener_socket_give_back(sock, ls);
    if (connection_limit_is_first(gen->conf.over_limit))
        connection_limit_undo(ls->connection_limit, &ls->quota, sock->is_over);
}

static void listener_socket_name(void *cookie, char *text, size_t size)
{
    const struct listener_socket *sock = cookie;
    char address[ADDRESS_TEXT_BYTES];

    snprintf(text, size, "listen %s: %s", listener_socket_generation(sock)->listener->name,
             address_format(address, sizeof(address), sock->address));
}

static const struct acceptor_ops listener_socket_acceptor_ops = {
    .admit = listener_socket_admit,
    .nobody = listener_socket_accept_empty,
    .accepted = listener_socket_accepted,
    .name = listener_socket_name};

static void listener_socket_run_free(struct task *t)
{
    struct listener_socket *sock = CONTAINER_OF(t, struct listener_socket, stop);

    lock_take(sock->lock);
    list_remove(&sock->link);
    lock_release(sock->lock);
    listener_socket_destroy(sock);
}

/* No drop(): listeners_destroy() frees the socket. */
static const struct task_type listener_socket_free_type = {.name = "listener free",
                                                           .run = listener_socket_run_free};

void listener_socket_unlink(const struct sock_own_file *file, const struct address *a)
{
    if (!sock_unlink_own(file, a))
        log_warning("listen address %s: not removed: the file is of another program now",
                    a->u.un.sun_path);
}

/* Remove the file before the close: afterwards the path may belong to another process. */
static void listener_socket_close(struct listener_socket *sock)
{
    if (sock->fd < 0)
        return;
    if (sock->linked && !sock->leaving)
        listener_socket_unlink(&sock->file, sock->address);
    sock->draining = true;
    if (!sock->leaving && sock->loop && loop_is_current(sock->loop))
        acceptor_drain(sock->acceptor);
    connection_limit_remove(sock->env->connection_limit, &sock->waiter);
    acceptor_stop(sock->acceptor);
    if (sock->env->descriptors)
        descriptor_budget_release(sock->env->descriptors, 1);
    sock->fd = -1;
}

/* Stop ${sock} on the loop that it has moved to. False: it is on this one, or there it was lost. */
static bool listener_socket_follows(struct listener_socket *sock)
{
    struct loop *loop;

    lock_take(sock->lock);
    loop = sock->loop;
    lock_release(sock->lock);
    return loop && !loop_is_current(loop) && loop_submit(loop, LOOP_CONTROL, &sock->stop) == 0;
}

/*
 * Free the socket in another task: until then its waiter may still be woken
 * (connection_limit_remove()). A socket that has moved is closed by its new loop.
 */
static void listener_socket_run_stop(struct task *t)
{
    struct listener_socket *sock = CONTAINER_OF(t, struct listener_socket, stop);
    const struct listeners_env *env = sock->env;

    if (listener_socket_follows(sock))
        return;
    listener_socket_close(sock);
    sock->stop.type = &listener_socket_free_type;
    if (loop_submit(loop_current(), LOOP_CONTROL, &sock->stop) < 0)
        task_drop(&sock->stop);
    env->stopped(env->cookie);
}

static void listener_socket_drop_stop(struct task *t)
{
    const struct listeners_env *env = CONTAINER_OF(t, struct listener_socket, stop)->env;

    env->stopped(env->cookie);
}

static const struct task_type listener_socket_stop_type = {
    .name = "listener stop", .run = listener_socket_run_stop, .drop = listener_socket_drop_stop};

/* ---- control loop ---- */

static struct sock_listen_conf listener_socket_listen_conf(const struct listener_generation *gen)
{
    const struct listener_conf *conf = &gen->conf;

    return (struct sock_listen_conf){.backlog = (int)conf->backlog,
                                     .reuseport = gen->sockets > 1,
                                     .file = conf->unix_file,
                                     .options = conf->socket};
}

int listener_socket_open(struct listener_socket **out, const struct listener_socket_conf *conf,
                         struct listener_generation *gen)
{
    struct sock_listen_conf listen_conf = listener_socket_listen_conf(gen);
    struct listener_socket *sock = calloc(1, sizeof(*sock));
    int rc;

    if (!sock)
        return -ENOMEM;
    listen_conf.reuseport |= conf->share_port;
    listen_conf.bind_only = conf->bind_only;
    sock->linked = !socket_store_open(conf->env->store, &sock->fd, conf->address, &listen_conf);
    sock->bind_only = conf->bind_only && sock->linked; /* a stored socket listens already */
    rc = sock->fd;
    if (rc < 0)
        goto err_free;
    sock_remember(&sock->file, conf->address);
    rc = acceptor_create(&sock->acceptor, conf->accept_batch, sock->fd,
                         &listener_socket_acceptor_ops, sock);
    if (rc < 0)
        goto err_close;
    sock->lock = conf->lock;
    sock->env = conf->env;
    sock->address = conf->address;
    atomic_init(&sock->generation, gen);
    listener_socket_init_tasks(sock);
    sock->stop.type = &listener_socket_stop_type;
    list_init(&sock->link);
    list_init(&sock->waiter.link);
    if (sock->env->descriptors)
        descriptor_budget_count(sock->env->descriptors, 1);
    *out = sock;
    return 0;

err_close:
    if (sock->linked)
        sock_unlink(conf->address);
    close(sock->fd);
err_free:
    free(sock);
    return rc;
}

int listener_socket_configure(struct listener_socket *sock)
{
    struct sock_listen_conf conf = listener_socket_listen_conf(listener_socket_generation(sock));

    return sock_inherit(sock->fd, sock->address, &conf);
}

int listener_socket_listen(struct listener_socket *sock)
{
    int backlog = (int)listener_socket_generation(sock)->conf.backlog;

    return listen(sock->fd, backlog) < 0 ? -errno : 0;
}

/* The next listener of an address may have another unix_mode, unix_user or unix_group. */
static void listener_socket_change_file(const struct listener_socket *sock,
                                        const struct sock_file *before,
                                        const struct listener_conf *conf)
{
    const struct sock_file *file = &conf->unix_file;
    char text[ADDRESS_TEXT_BYTES];
    int rc;

    if (file->set_mode == before->set_mode && file->mode == before->mode &&
        file->set_uid == before->set_uid && file->uid == before->uid &&
        file->set_gid == before->set_gid && file->gid == before->gid)
        return;
    rc = sock_is_replaced(&sock->file, sock->address) ? -ESTALE
                                                      : sock_change_file(sock->address, file);
    if (rc < 0)
        log_warning("listen %s: %s: the socket file keeps its mode and owner: %s", conf->name,
                    address_format(text, sizeof(text), sock->address), strerror(-rc));
}

void listener_socket_give(struct listener_socket *sock, struct listener_generation *gen,
                          unsigned accept_batch)
{
    const struct listener_conf *before = &listener_socket_generation(sock)->conf;
    const struct listener_conf *conf = &gen->conf;

    sock_options_change(sock->fd, sock->address->u.sa.sa_family, &before->socket, &conf->socket);
    if (conf->backlog != before->backlog)
        (void)listen(sock->fd, (int)conf->backlog); /* changes the backlog only */
    listener_socket_change_file(sock, &before->unix_file, conf);
    acceptor_set_batch(sock->acceptor, accept_batch);
    atomic_store(&sock->generation, gen); /* see note: current */
}

bool listener_socket_stop(struct listener_socket *sock)
{
    (void)listener_generation_hold(listener_socket_generation(sock));
    sock->stopping = true;
    if (!sock->loop) {
        listener_socket_close(sock);
        return true;
    }
    return loop_submit(sock->loop, LOOP_CONTROL, &sock->stop) < 0;
}

void listener_socket_destroy(struct listener_socket *sock)
{
    listener_socket_close(sock);
    acceptor_destroy(sock->acceptor);
    if (sock->stopping)
        listener_generation_release(listener_socket_generation(sock));
    free(sock);
}
