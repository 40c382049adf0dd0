/* relay_copy: one recv into a shared scratch buffer, one send out of it. */
#include "bare/held.h"
#include "bare/relay.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

static uint8_t scratch[RELAY_BYTES];

static enum relay_result copy_move(int from, int to, void **held)
{
    ssize_t got = recv(from, scratch, sizeof(scratch), 0);
    ssize_t sent;

    if (got == 0)
        return RELAY_EOF;
    if (got < 0)
        return errno == EAGAIN ? RELAY_DONE : RELAY_ERROR;
    sent = send(to, scratch, (size_t)got, MSG_NOSIGNAL);
    if (sent == got)
        return got == RELAY_BYTES ? RELAY_FULL : RELAY_DONE;
    if (sent < 0 && errno != EAGAIN)
        return RELAY_ERROR;
    if (sent < 0)
        sent = 0;
    *held = held_new(scratch + sent, (size_t)(got - sent));
    return RELAY_BLOCKED;
}

static void copy_drop(void **held)
{
    free(*held);
    *held = NULL;
}

static enum relay_result copy_flush(int to, void **held)
{
    struct held *h = *held;
    ssize_t sent = send(to, h->data + h->sent_bytes, h->len_bytes - h->sent_bytes, MSG_NOSIGNAL);

    if (sent < 0)
        return errno == EAGAIN ? RELAY_BLOCKED : RELAY_ERROR;
    h->sent_bytes += (size_t)sent;
    if (h->sent_bytes < h->len_bytes)
        return RELAY_BLOCKED;
    copy_drop(held);
    return RELAY_DONE;
}

const struct relay relay_copy = {.move = copy_move, .flush = copy_flush, .drop = copy_drop};
