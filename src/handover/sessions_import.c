#include "handover/sessions_import.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "handover/handoff_figures.h"
#include "handover/session_message.h"
#include "handover/session_record.h"
#include "handover/sessions_place.h"
#include "server/server.h"
#include "server/server_parts.h"
#include "service/service.h"
#include "service/session.h"
#include "service/session_handover.h"
#include "service/session_state.h"
#include "sessions/worker.h"

/* Messages of one step, and the longest wait for a full queue of answers. */
#define SESSIONS_IMPORT_BATCH   64
#define SESSIONS_IMPORT_WAIT_MS 1000

struct sessions_import {
    struct server *server;
    int fd;
    bool is_over; /* no more messages are read */
    atomic_uint unanswered;
    _Atomic uint64_t taken;
    struct handoff_figures told; /* by the other process */
    uint8_t buffer[SESSION_MESSAGE_INLINE_BYTES];
};

/* A session on its way through the threads. */
struct sessions_import_item {
    struct task task;
    struct sessions_import *import;
    uint64_t number;
    uint8_t *record; /* `state` points into it */
    struct session_state state;
    int fds[SESSION_MESSAGE_FDS];
    unsigned n_fds;
    struct session *session;
};

/* The queue has space for all answers: waiting is for a process that was stopped. */
static int sessions_import_send(const struct sessions_import *im, const struct session_message *m)
{
    struct pollfd writable = {.fd = im->fd, .events = POLLOUT};
    int rc = session_message_send(im->fd, m, NULL);

    if (rc == -EAGAIN && poll(&writable, 1, SESSIONS_IMPORT_WAIT_MS) == 1)
        rc = session_message_send(im->fd, m, NULL);
    return rc;
}

static void sessions_import_free(struct sessions_import_item *item)
{
    free(item->record);
    atomic_fetch_sub(&item->import->unanswered, 1); /* the last access */
    free(item);
}

static void sessions_import_refuse(const struct sessions_import *im, uint64_t number,
                                   enum session_stay why)
{
    const struct session_message m = {
        .type = SESSION_MESSAGE_REFUSED, .why = why, .number = number};
    int rc = sessions_import_send(im, &m);

    if (rc < 0)
        log_debug("upgrade: a session of the process before is lost: it has ended");
}

static void sessions_import_refuse_item(struct sessions_import_item *item, enum session_stay why)
{
    for (unsigned i = 0; i < item->n_fds; i++)
        close(item->fds[i]); /* first: then the other process has the only ones */
    sessions_import_refuse(item->import, item->number, why);
    sessions_import_free(item);
}

/* ---- worker's loop ---- */

/* If the other process has ended, the session is ours as well. */
static int sessions_import_commit(void *cookie)
{
    const struct sessions_import_item *item = cookie;
    const struct session_message m = {.type = SESSION_MESSAGE_TAKEN, .number = item->number};
    int rc = sessions_import_send(item->import, &m);

    return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}

/* Why a session is refused that could not be built. */
static enum session_stay sessions_import_why(int rc)
{
    switch (rc) {
    case -EINVAL: return SESSION_STAYS_RECORD;
    case -ESTALE: return SESSION_STAYS_CHANGED;
    default: return SESSION_STAYS_SCARCE;
    }
}

static void sessions_import_run_take(struct task *t)
{
    struct sessions_import_item *item = CONTAINER_OF(t, struct sessions_import_item, task);
    struct worker_take take = {.state = &item->state,
                               .fds = item->fds,
                               .n_fds = item->n_fds,
                               .commit = sessions_import_commit,
                               .cookie = item};
    int rc = worker_take(loop_cookie(loop_current()), item->session, &take);

    if (rc < 0)
        sessions_import_refuse(item->import, item->number, sessions_import_why(rc));
    else
        atomic_fetch_add(&item->import->taken, 1);
    sessions_import_free(item);
}

/* The loop has ended. */
static void sessions_import_drop_take(struct task *t)
{
    struct sessions_import_item *item = CONTAINER_OF(t, struct sessions_import_item, task);

    sessions_place_leave(item->import->server, item->session);
    sessions_import_refuse_item(item, SESSION_STAYS_SCARCE);
}

static const struct task_type sessions_import_take_type = {.name = "take session over",
                                                           .run = sessions_import_run_take,
                                                           .drop = sessions_import_drop_take};

/* ---- control loop ---- */

static int sessions_import_assign(struct sessions_import_item *item)
{
    struct loop_group *loops = server_parts(item->import->server).loops;
    const struct service *service = item->session->service;
    int rc = -ESHUTDOWN;

    item->task.type = &sessions_import_take_type;
    for (unsigned i = 0; i < loop_group_in_use(loops) && rc < 0; i++) {
        struct loop *loop = loop_group_next_in(loops, service->rounds);

        if (loop)
            rc = loop_submit(loop, LOOP_CONTROL, &item->task);
    }
    return rc;
}

static void sessions_import_run_place(struct task *t)
{
    struct sessions_import_item *item = CONTAINER_OF(t, struct sessions_import_item, task);
    struct server *sv = item->import->server;
    enum session_stay why =
        sessions_place(&item->session, sv, &item->state,
                       session_state_has_server(&item->state) ? item->fds[1] : -1);

    if (why != SESSION_STAYS_NOT) {
        sessions_import_refuse_item(item, why);
    } else if (sessions_import_assign(item) < 0) {
        sessions_place_leave(sv, item->session);
        sessions_import_refuse_item(item, SESSION_STAYS_SCARCE);
    }
}

static void sessions_import_drop_place(struct task *t)
{
    sessions_import_refuse_item(CONTAINER_OF(t, struct sessions_import_item, task),
                                SESSION_STAYS_SCARCE);
}

static const struct task_type sessions_import_place_type = {
    .name = "place session", .run = sessions_import_run_place, .drop = sessions_import_drop_place};

/* ---- main ---- */

static bool sessions_import_is_stream(int fd)
{
    int type = 0, listens = 1;
    socklen_t len = sizeof(type), listens_len = sizeof(listens);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) == 0 && !listens;
}

/* Are ${fds} both ends of one pipe, with ${bytes}? */
static bool sessions_import_is_pipe(const int *fds, uint64_t bytes)
{
    struct stat ends[2];
    int n;

    return fstat(fds[0], &ends[0]) == 0 && fstat(fds[1], &ends[1]) == 0 &&
           S_ISFIFO(ends[0].st_mode) && ends[0].st_dev == ends[1].st_dev &&
           ends[0].st_ino == ends[1].st_ino &&
           (fcntl(fds[0], F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == (O_RDONLY | O_NONBLOCK) &&
           (fcntl(fds[1], F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == (O_WRONLY | O_NONBLOCK) &&
           ioctl(fds[0], FIONREAD, &n) == 0 && (uint64_t)n == bytes;
}

/* NULL: the descriptors are those of the record. */
static const char *sessions_import_check_fds(const struct sessions_import_item *item)
{
    unsigned sockets = session_state_has_server(&item->state) ? 2 : 1, n = sockets;

    for (unsigned i = 0; i < ARRAY_LEN(item->state.legs); i++)
        n += item->state.legs[i].piped > 0 ? 2 : 0;
    if (item->n_fds != n)
        return "its record has descriptors missing, or too many";
    for (unsigned i = 0; i < sockets; i++)
        if (!sessions_import_is_stream(item->fds[i]))
            return "its record has a descriptor that is no connection";
    n = sockets;
    for (unsigned i = 0; i < ARRAY_LEN(item->state.legs); i++) {
        if (item->state.legs[i].piped == 0)
            continue;
        if (!sessions_import_is_pipe(&item->fds[n], item->state.legs[i].piped))
            return "its record has a pipe that is none, or has other bytes";
        n += 2;
    }
    return NULL;
}

/* Read the record of ${item}; NULL: it can be placed. */
static const char *sessions_import_decode(struct sessions_import_item *item, size_t n)
{
    int rc = session_record_decode(&item->state, item->record, n);

    if (rc == -EPROTONOSUPPORT)
        return "its record is of another version";
    if (rc == -EMSGSIZE)
        return "its record is cut short, or too long";
    if (rc < 0)
        return "its record is malformed";
    return sessions_import_check_fds(item);
}

/* Copy ${body} to the new ${item}. */
static int sessions_import_fill(struct sessions_import_item *item,
                                const struct session_message_body *body, const uint8_t *buffer)
{
    memcpy(item->fds, body->fds, sizeof(item->fds));
    item->n_fds = body->n_fds;
    if (body->data != buffer) {
        item->record = (uint8_t *)body->data; /* read from a file, and ours */
        return 0;
    }
    item->record = malloc(body->n + 1);
    if (!item->record)
        return -ENOMEM;
    memcpy(item->record, body->data, body->n);
    return 0;
}

static void sessions_import_read(struct sessions_import_item *item, size_t n)
{
    const char *problem = sessions_import_decode(item, n);
    struct loop *control = server_parts(item->import->server).control;

    if (problem) {
        static struct log_limit limit;
        unsigned suppressed;

        if (log_allowed(&limit, NS_PER_S, &suppressed))
            log_warning("upgrade: a session stays with the process before: %s%s", problem,
                        LOG_SUPPRESSED(suppressed));
        sessions_import_refuse_item(item, SESSION_STAYS_RECORD);
        return;
    }
    item->task.type = &sessions_import_place_type;
    if (loop_submit(control, LOOP_CONTROL, &item->task) < 0)
        sessions_import_refuse_item(item, SESSION_STAYS_SCARCE);
}

static void sessions_import_session(struct sessions_import *im, const struct session_message *m,
                                    struct session_message_body *body)
{
    struct sessions_import_item *item = calloc(1, sizeof(*item));

    if (!item) {
        session_message_drop(body, im->buffer);
        sessions_import_refuse(im, m->number, SESSION_STAYS_SCARCE);
        return;
    }
    atomic_fetch_add(&im->unanswered, 1);
    item->import = im;
    item->number = m->number;
    if (sessions_import_fill(item, body, im->buffer) < 0)
        sessions_import_refuse_item(item, SESSION_STAYS_SCARCE);
    else
        sessions_import_read(item, body->n);
}

/* ${n} bytes at ${data} are the figures of the other process; unless it counts other reasons. */
static void sessions_import_told(struct sessions_import *im, const uint8_t *data, size_t n)
{
    if (n == sizeof(im->told))
        memcpy(im->told.stayed, data + offsetof(struct handoff_figures, stayed),
               sizeof(im->told.stayed));
}

static void sessions_import_act(struct sessions_import *im, int rc, const struct session_message *m,
                                struct session_message_body *body)
{
    if (rc < 0) {
        sessions_import_refuse(im, m->number,
                               rc == -EMFILE || rc == -ENOMEM ? SESSION_STAYS_SCARCE
                                                              : SESSION_STAYS_RECORD);
        return;
    }
    if (m->type == SESSION_MESSAGE_SESSION) {
        sessions_import_session(im, m, body);
        return;
    }
    if (m->type == SESSION_MESSAGE_OVER)
        im->is_over = true;
    if (m->type == SESSION_MESSAGE_OVER || m->type == SESSION_MESSAGE_FIGURES)
        sessions_import_told(im, body->data, body->n);
    session_message_drop(body, im->buffer);
}

bool sessions_import_step(struct sessions_import *im)
{
    for (unsigned i = 0; i < SESSIONS_IMPORT_BATCH && !im->is_over; i++) {
        struct session_message m;
        struct session_message_body body;
        int rc = session_message_receive(im->fd, &m, &body, im->buffer);

        if (rc == -EAGAIN)
            break;
        if (rc == -EPIPE)
            im->is_over = true;
        else
            sessions_import_act(im, rc, &m, &body);
    }
    return im->is_over && atomic_load(&im->unanswered) == 0;
}

static bool sessions_import_is_of_our_user(int fd)
{
    struct ucred other;
    socklen_t len = sizeof(other);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &len) == 0 &&
           (other.uid == geteuid() || other.uid == 0);
}

int sessions_import_begin(struct sessions_import **out, struct server *sv, int fd, unsigned rate)
{
    const struct session_message want = {.type = SESSION_MESSAGE_WANT, .number = rate};
    struct sessions_import *im = NULL;
    int rc = sessions_import_is_of_our_user(fd) ? 0 : -EPERM;

    if (rc == 0 && !(im = calloc(1, sizeof(*im))))
        rc = -ENOMEM;
    if (rc == 0)
        rc = session_message_send(fd, &want, NULL);
    if (rc < 0) {
        free(im);
        close(fd);
        return rc;
    }
    im->server = sv;
    im->fd = fd;
    server_hold(sv);
    *out = im;
    return 0;
}

int sessions_import_fd(const struct sessions_import *im)
{
    return im->fd;
}

void sessions_import_figures(const struct sessions_import *im, struct handoff_figures *out)
{
    *out = im->told;
    out->moved = atomic_load(&im->taken);
    out->under_way = true;
}

void sessions_import_stop(struct sessions_import *im)
{
    im->is_over = true;
}

void sessions_import_destroy(struct sessions_import *im)
{
    if (!im)
        return;
    server_unhold(im->server);
    close(im->fd);
    free(im);
}
