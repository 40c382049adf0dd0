#include "net/transport.h"

#include <errno.h>
#include <sys/socket.h>

#include "net/channel.h"

static ssize_t transport_plain_recv(struct channel *ch, void *data, size_t len)
{
    ssize_t n;

    do
        n = recv(ch->io.fd, data, len, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static ssize_t transport_plain_send(struct channel *ch, const void *data, size_t len)
{
    ssize_t n;

    do
        n = send(ch->io.fd, data, len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int transport_plain_shutdown_write(struct channel *ch)
{
    return shutdown(ch->io.fd, SHUT_WR) < 0 ? -errno : 0;
}

static const struct transport transport_plain = {
    .recv = transport_plain_recv,
    .send = transport_plain_send,
    .shutdown_write = transport_plain_shutdown_write,
    .can_splice = true,
};

const struct transport *const transport_table[] = {[TRANSPORT_PLAIN] = &transport_plain};
