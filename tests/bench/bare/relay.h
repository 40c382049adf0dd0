/*
 * relay: moves bytes from one socket to another, in one of three ways: by copy (recv, send), by
 * splice (through a pipe), or by copy with TLS on the client's side. The proxy decides when; a
 * relay decides how.
 *
 * What a blocked receiver has not taken stays with the relay as `held`: a buffer or a pipe. While
 * something is held for a direction the proxy does not read that direction's sender, so memory is
 * bounded.
 */
#ifndef BENCH_RELAY_H
#define BENCH_RELAY_H

enum {
    RELAY_BYTES = 65536, /* at most so much is moved at once */
};

enum relay_result {
    RELAY_DONE, /* nothing is held; the sender had less than RELAY_BYTES, so there is no more now */
    RELAY_FULL, /* nothing is held; the sender had RELAY_BYTES, so there is likely more */
    RELAY_BLOCKED, /* something is held: wait until the receiver is writable, then flush */
    RELAY_EOF,     /* the sender has ended its direction */
    RELAY_ERROR,   /* either socket failed */
};

struct relay {
    /* Move what one read gives. *held is NULL before; set when the receiver takes less. */
    enum relay_result (*move)(int from, int to, void **held);
    /* Send on what is held; *held is NULL again when all of it is gone. */
    enum relay_result (*flush)(int to, void **held);
    /* Forget what is held. */
    void (*drop)(void **held);
    /* TLS, otherwise NULL: a client was accepted; its direction ends; a socket is closed. */
    void (*open)(int fd);
    void (*end)(int fd);
    void (*close)(int fd);
};

extern const struct relay relay_copy;
extern const struct relay relay_splice;
extern const struct relay relay_tls;

/*
 * relay_tls_init(certificate):
 * Before relay_tls is used: the file has certificate and key.
 */
void relay_tls_init(const char *certificate);

#endif
