/*
 * net/transport: reads and writes a channel's descriptor. TLS would be another kind.
 */
#ifndef NET_TRANSPORT_H
#define NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct channel;

/* On the channel's loop; non-blocking. */
struct transport {
    /* Bytes read; 0: end of file; -EAGAIN; -errno. */
    ssize_t (*recv)(struct channel *ch, void *data, size_t len);
    /* Bytes taken; -EAGAIN; -errno. No SIGPIPE. */
    ssize_t (*send)(struct channel *ch, const void *data, size_t len);
    /* Send end of file: 0; -errno. */
    int (*shutdown_write)(struct channel *ch);
    /* Pipes may bypass recv and send. */
    bool can_splice;
};

/* Stored in two bits, not as a pointer: saves space in the channel's hottest cache line. */
enum transport_kind { TRANSPORT_PLAIN };

extern const struct transport *const transport_table[];

#endif
