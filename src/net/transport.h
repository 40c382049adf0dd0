/*
 * net/transport: how a channel's bytes get to and from its descriptor.
 *
 * The plain transport is the socket itself. Another one (TLS) is another table in another file.
 */
#ifndef NET_TRANSPORT_H
#define NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct channel;

/* Every operation is called on the loop of the channel; none blocks. */
struct transport {
    /* Bytes read; 0 at the peer's end of file; -EAGAIN; -errno. */
    ssize_t (*recv)(struct channel *ch, void *data, size_t len);
    /* Bytes taken; -EAGAIN; -errno. Never raises SIGPIPE. */
    ssize_t (*send)(struct channel *ch, const void *data, size_t len);
    /* Tell the peer that no more is sent: 0; -errno. */
    int (*shutdown_write)(struct channel *ch);
    /* May the bytes bypass recv and send through a pipe? */
    bool can_splice;
};

/*
 * A channel keeps which one as a byte, so that it does not cost a pointer in its hottest cache
 * line.
 */
enum transport_kind { TRANSPORT_PLAIN };

extern const struct transport *const transport_table[];

#endif
