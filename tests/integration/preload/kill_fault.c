/*
 * preload/kill_fault: SIGKILL to the old or to the new process of an upgrade, at one of the calls
 * by which sessions change hands. And counts of what was handed over when it struck.
 */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "plan.h"

/*
 * As in test_upgrade_kills.py. Faults of the old process, then the same of the new one: each stands
 * for one call on a hand-off socket. CLOSES and WATCHES are also those of connections.
 */
enum call {
    SENDS,    /* before sendmsg() */
    RECEIVES, /* before recvmsg() of a message that has come: it stays in the queue */
    RECEIVED, /* behind it: the message is lost */
    CLOSES,   /* before close() */
    WATCHES,  /* before epoll_ctl() */
    CALLS
};

/*
 * Behind them: `value` of the first is the pid of the old process, of the second the microseconds
 * that each receiver lags behind, so that messages queue up. Then counts of messages of each type:
 * `skip`: begun to send, unless that failed; `struck`: sent.
 */
enum { OLD = 2 * CALLS, LAG, COUNTS };

/* As in handover/session_message.h: the head of a message. */
enum { SESSION = 2, TAKEN, REFUSED };

struct head {
    uint32_t type, why;
    uint64_t number;
};

static int socket_option(int fd, int name)
{
    int value = 0, error = errno;
    socklen_t len = sizeof(value);

    if (getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0)
        value = -1;
    errno = error;
    return value;
}

static bool is_hand_off(int fd)
{
    return socket_option(fd, SO_TYPE) == SOCK_SEQPACKET;
}

static bool is_connection(int fd)
{
    return socket_option(fd, SO_TYPE) == SOCK_STREAM && socket_option(fd, SO_ACCEPTCONN) == 0;
}

/* Is this the call to be killed at? Between a fork and its execve() the new process is a child. */
static void die_at(enum call call)
{
    bool is_old = getpid() == plan_map()[OLD].value;

    if (plan_strikes(is_old ? call : CALLS + call))
        kill(getpid(), SIGKILL);
}

/* The count for ${message}; NULL: it is of another kind. */
static struct plan_fault *count_of(const struct msghdr *message)
{
    struct head head;

    if (message->msg_iovlen != 2 || message->msg_iov[0].iov_len != sizeof(head))
        return NULL;
    memcpy(&head, message->msg_iov[0].iov_base, sizeof(head));
    return head.type >= SESSION && head.type <= REFUSED ? plan_map() + COUNTS + head.type - SESSION
                                                        : NULL;
}

static ssize_t send_counted(int fd, const struct msghdr *message, int flags)
{
    static __typeof__(&sendmsg) next;
    struct plan_fault *count = count_of(message);
    ssize_t n;

    if (!next)
        next = PLAN_NEXT(sendmsg);
    if (count)
        atomic_fetch_add(&count->skip, 1);
    n = next(fd, message, flags);
    if (count && n >= 0)
        atomic_fetch_add(&count->struck, 1);
    else if (count)
        atomic_fetch_sub(&count->skip, 1);
    return n;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (is_hand_off(fd))
        die_at(SENDS);
    return send_counted(fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    static __typeof__(&recvmsg) next;
    bool is_ours = is_hand_off(fd);
    int waiting = 0, error = errno;
    ssize_t n;

    if (!next)
        next = PLAN_NEXT(recvmsg);
    if (is_ours && ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0) {
        usleep((useconds_t)plan_map()[LAG].value);
        die_at(RECEIVES);
    }
    errno = error;
    n = next(fd, message, flags);
    if (is_ours && n > 0)
        die_at(RECEIVED);
    return n;
}

int close(int fd)
{
    static __typeof__(&close) next;

    if (!next)
        next = PLAN_NEXT(close);
    if (is_hand_off(fd) || is_connection(fd))
        die_at(CLOSES);
    return next(fd);
}

int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
    static __typeof__(&epoll_ctl) next;

    if (!next)
        next = PLAN_NEXT(epoll_ctl);
    if (is_hand_off(fd) || is_connection(fd))
        die_at(WATCHES);
    return next(epoll_fd, operation, fd, event);
}

/* Before a fork() in the middle of another thread's dlsym(). */
__attribute__((constructor)) static void find(void)
{
    close(-1);
    (void)epoll_ctl(-1, 0, -1, NULL);
    (void)plan_map();
}
