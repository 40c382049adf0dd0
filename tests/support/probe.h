/*
 * support/probe: a channel whose pipeline tail writes down what happens to it.
 *
 * The functions may be called from the test's thread; each does its work on the loop and waits for
 * it.
 */
#ifndef SUPPORT_PROBE_H
#define SUPPORT_PROBE_H

#include "net/channel.h"

/*
 * Letters of events: active, read, eof, rejected (the channel is aborted then), writable, broken,
 * closed; read and writable once for several in a row.
 */
#define PROBE_ACTIVE   'a'
#define PROBE_READ     'r'
#define PROBE_EOF      'e'
#define PROBE_REJECTED 'x'
#define PROBE_WRITABLE 'w'
#define PROBE_BROKEN   'b'
#define PROBE_CLOSED   'c'

#define PROBE_EVENTS 64

struct probe {
    struct channel channel;
    struct handler tail;
    struct netloop *net;
    struct buffer read; /* all bytes that were read */
    char events[PROBE_EVENTS];
    unsigned n_reads;
    int fd;     /* the channel's */
    int peer;   /* the test's end of the connection; -1: closed */
    int broken; /* error of the broken event */
    int error;  /* of the closed event */
    void (*on_read)(struct probe *p);
    void (*on_eof)(struct probe *p);
    void (*on_writable)(struct probe *p);
    char seen[PROBE_EVENTS];
};

/* The channel of the fixtures below. */
extern struct probe probe;

/*
 * probe_connect() / probe_connect_and_start() / probe_disconnect():
 * Checked fixtures: make `probe` one end of a TCP connection, on a loop of its own; start it too;
 * close it and end the loop, and see that no descriptor is left.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void probe_connect(void);
void probe_connect_and_start(void);
void probe_disconnect(void);

/*
 * probe_start_over(connect):
 * Close `probe` and make it one end of what ${connect} connects; start it.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void probe_start_over(void (*connect)(int *ours, int *theirs));

/*
 * probe_net(loop):
 * What channels on ${loop} need.
 *
 * Thread: the test's
 * Owns:   the caller frees it with netloop_destroy() when the loop has ended
 * Errors: none (the test fails)
 */
struct netloop *probe_net(struct loop *loop);

/*
 * probe_init(p, net, connect) / probe_start(p):
 * Make a channel of one end of a connection, the other end of which is `peer`; start it.
 * ${connect} is sockets_tcp() or sockets_unix().
 *
 * Thread: the test's
 * Owns:   probe_close() frees it and closes both ends
 * Errors: the test fails
 */
void probe_init(struct probe *p, struct netloop *net, void (*connect)(int *ours, int *theirs));
void probe_start(struct probe *p);

/*
 * probe_do(p, operation):
 * Call ${operation}, such as channel_shutdown_write, with the channel.
 *
 * Thread: the test's
 */
void probe_do(struct probe *p, void (*operation)(struct channel *ch));

/*
 * probe_stop(p) / probe_read_on(p) / probe_stop_for(p, why):
 * channel_stop_reading() and channel_resume_reading() for its receiver; stop for ${why}.
 *
 * Thread: the test's
 */
void probe_stop(struct probe *p);
void probe_read_on(struct probe *p);
void probe_stop_for(struct probe *p, enum channel_stop why);

/*
 * probe_write(p, data, len) / probe_write_pattern(p, from, len):
 * channel_write().
 *
 * Thread: the test's
 * Errors: as channel_write()
 */
int probe_write(struct probe *p, const void *data, size_t len) NODISCARD;
int probe_write_pattern(struct probe *p, size_t from, size_t len) NODISCARD;

/*
 * probe_abort(p, error) / probe_end(p, how) / probe_set_input_pending(p, pending) /
 * probe_splice(p, to, mode):
 * channel_abort(), channel_end(), channel_set_input_pending(), channel_splice_to().
 *
 * Thread: the test's
 */
void probe_end(struct probe *p, unsigned how);
void probe_set_input_pending(struct probe *p, bool pending);
void probe_abort(struct probe *p, int error);
void probe_splice(struct probe *p, struct probe *to, enum splice_mode mode);

/*
 * probe_events(p) / probe_read(p) / probe_in(p) / probe_pending(p) / probe_unsent(p):
 * The letters so far; the bytes the pipeline got; those that came in, discarded or spliced ones
 * too; those that wait to be sent; those that were not acknowledged.
 *
 * Thread: the test's
 */
const char *probe_events(struct probe *p);
size_t probe_read(struct probe *p);
size_t probe_in(struct probe *p);
size_t probe_pending(struct probe *p);
size_t probe_unsent(struct probe *p);

/*
 * probe_is(p, question):
 * What ${question}, such as channel_writable, says of the channel.
 *
 * Thread: the test's
 */
bool probe_is(struct probe *p, bool (*question)(const struct channel *ch));

/*
 * probe_saw(p, event) / probe_wait(p, event):
 * Did ${event} happen? Wait until it has.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
bool probe_saw(struct probe *p, char event);
void probe_wait(struct probe *p, char event);

/*
 * probe_expect_closed(p, error, events):
 * Wait until it is closed, and see the error and the letters of all its events.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void probe_expect_closed(struct probe *p, int error, const char *events);

/*
 * probe_reset_peer(p):
 * Reset the connection from the test's end.
 *
 * Thread: the test's
 */
void probe_reset_peer(struct probe *p);

/*
 * probe_close(p):
 * Abort the channel if it lives, wait for its end, free what was read and close the test's end.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void probe_close(struct probe *p);

#endif
