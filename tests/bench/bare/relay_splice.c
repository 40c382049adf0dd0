/*
 * relay_splice: one splice into a pipe, one splice out of it.
 *
 * All connections share one warm pipe, since it is empty again before the next event. When a
 * receiver blocks, the pipe becomes that direction's own until it is empty, and the next event
 * takes another one from the stack of spare pipes. The last one given back is the first one taken:
 * it is warm.
 */
#include "bare/relay.h"
#include "common/die.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct splice_pipe {
    int read_fd;
    int write_fd;
    size_t held_bytes;
    struct splice_pipe *next; /* of the spare ones */
};

static struct splice_pipe *spare; /* all of them empty */

static struct splice_pipe *pipe_take(void)
{
    struct splice_pipe *p = spare;
    int fds[2];

    if (p) {
        spare = p->next;
        return p;
    }
    p = calloc(1, sizeof(*p));
    if (!p)
        die_errno("calloc");
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
        die_errno("pipe2");
    p->read_fd = fds[0];
    p->write_fd = fds[1];
    return p;
}

static void pipe_give_back(struct splice_pipe *p)
{
    p->next = spare;
    spare = p;
}

/* A pipe with bytes in it cannot be given back: they would become another connection's. */
static void pipe_destroy(struct splice_pipe *p)
{
    close(p->read_fd);
    close(p->write_fd);
    free(p);
}

static enum relay_result pipe_empty_into(struct splice_pipe *p, int to)
{
    ssize_t sent = splice(p->read_fd, NULL, to, NULL, p->held_bytes, SPLICE_F_NONBLOCK);

    if (sent < 0)
        return errno == EAGAIN ? RELAY_BLOCKED : RELAY_ERROR;
    p->held_bytes -= (size_t)sent;
    return p->held_bytes ? RELAY_BLOCKED : RELAY_DONE;
}

static enum relay_result splice_move(int from, int to, void **held)
{
    struct splice_pipe *p = pipe_take();
    ssize_t got = splice(from, NULL, p->write_fd, NULL, RELAY_BYTES, SPLICE_F_NONBLOCK);
    enum relay_result result;

    if (got <= 0) {
        pipe_give_back(p);
        if (got == 0)
            return RELAY_EOF;
        return errno == EAGAIN ? RELAY_DONE : RELAY_ERROR;
    }
    p->held_bytes = (size_t)got;
    result = pipe_empty_into(p, to);
    if (result != RELAY_DONE) {
        *held = p;
        return result;
    }
    pipe_give_back(p);
    return got == RELAY_BYTES ? RELAY_FULL : RELAY_DONE;
}

static void splice_drop(void **held)
{
    if (*held)
        pipe_destroy(*held);
    *held = NULL;
}

static enum relay_result splice_flush(int to, void **held)
{
    enum relay_result result = pipe_empty_into(*held, to);

    if (result == RELAY_DONE) {
        pipe_give_back(*held);
        *held = NULL;
    }
    return result;
}

const struct relay relay_splice = {.move = splice_move, .flush = splice_flush, .drop = splice_drop};
