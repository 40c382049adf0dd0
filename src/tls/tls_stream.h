/*
 * tls/tls_stream: one TLS connection; converts between plain bytes and records in memory.
 *
 * One thread at a time uses it: the loop's or, during a step of the handshake, one of
 * tls/tls_handshakes.
 *
 * Records that a call makes are in memory of the calling thread. tls_stream_output() returns them
 * until this thread's next call for any stream.
 */
#ifndef TLS_TLS_STREAM_H
#define TLS_TLS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"

struct ssl_st;
struct tls_failure;
struct tls_hello;
struct tls_stream;

enum tls_stream_result {
    TLS_STREAM_DONE,
    TLS_STREAM_INPUT,  /* needs more input */
    TLS_STREAM_OUTPUT, /* the output is full: send it, call again */
    TLS_STREAM_CLOSED, /* the peer sent close_notify */
    TLS_STREAM_FAILED  /* see tls_stream_failure(); the output may have an alert */
};

/*
 * tls_stream_create(out, ssl):
 * Create a stream on ${ssl}, whose state says that it accepts or connects.
 *
 * Owns:   the stream owns ${ssl}, which an error frees
 * Errors: 0; -ENOMEM
 */
int tls_stream_create(struct tls_stream **out, struct ssl_st *ssl) NODISCARD;

/* tls_stream_free(st): free ${st} or NULL. Thread: owner */
void tls_stream_free(struct tls_stream *st);

/*
 * tls_stream_set_hello(st, hello):
 * The client's ClientHello, as routes and logs use it; NULL: it cannot be read. The library's view
 * of it, and a second one, must agree.
 *
 * Thread: owner, before the handshake
 * Owns:   adds a reference to ${hello}
 */
void tls_stream_set_hello(struct tls_stream *st, struct tls_hello *hello);

/*
 * tls_stream_get_hello(ssl, hello):
 * In a callback of the library: the ClientHello that was set; false: none was set.
 *
 * Thread: owner of the stream of ${ssl}
 */
bool tls_stream_get_hello(const struct ssl_st *ssl, const struct tls_hello **hello);

/* tls_stream_ssl(st): return the library's SSL object, for other files of tls/. Thread: owner */
struct ssl_st *tls_stream_ssl(const struct tls_stream *st);

/*
 * tls_stream_input(st, data, len) / tls_stream_input_left(st):
 * Lend ${data} to the calls that follow / return how many bytes of ${data} are still unread.
 *
 * Thread: owner
 * Owns:   ${data} must be valid until it is read, or tls_stream_input() is called again
 */
void tls_stream_input(struct tls_stream *st, const uint8_t *data, size_t len);
size_t tls_stream_input_left(const struct tls_stream *st);

/*
 * tls_stream_handshake(st):
 * Continue the handshake as far as the input allows: DONE, INPUT, OUTPUT, CLOSED or FAILED.
 *
 * Thread: owner
 */
enum tls_stream_result tls_stream_handshake(struct tls_stream *st);

/*
 * tls_stream_handshake_is_cheap(st):
 * Does the next part of the handshake need no public-key arithmetic? (TLS 1.3: the client's
 * Finished, without a certificate)
 *
 * Thread: owner
 */
bool tls_stream_handshake_is_cheap(const struct tls_stream *st);

/*
 * tls_stream_is_confirmed(st):
 * Has the peer accepted the handshake? A client of TLS 1.3 learns that only from what the server
 * sends behind it: a ticket or bytes, or else an alert (RFC 8446, 4.4.2.4).
 *
 * Thread: owner, after the handshake
 */
bool tls_stream_is_confirmed(const struct tls_stream *st);

/*
 * tls_stream_read(st, out, max, n):
 * Decrypt at most ${max} bytes: DONE (${max} bytes; there may be more), INPUT, OUTPUT, CLOSED or
 * FAILED, each with ${n} bytes in ${out}.
 *
 * Thread: owner
 */
enum tls_stream_result tls_stream_read(struct tls_stream *st, uint8_t *out, size_t max, size_t *n);

/*
 * tls_stream_write(st, data, len, n):
 * Encrypt ${data}: DONE, OUTPUT (only the first ${n} bytes) or FAILED.
 *
 * Thread: owner
 */
enum tls_stream_result tls_stream_write(struct tls_stream *st, const uint8_t *data, size_t len,
                                        size_t *n);

/* tls_stream_shutdown_write(st): make a close_notify record; reading continues. Thread: owner */
void tls_stream_shutdown_write(struct tls_stream *st);

/*
 * tls_stream_refuse(st, alert, reason):
 * Make ${st} fail with ${reason}; the output has ${alert}, in plain text: for the first flight. A
 * negative ${alert}: none.
 *
 * Thread: owner
 */
void tls_stream_refuse(struct tls_stream *st, int alert, const char *reason);

/* tls_stream_output(st, n): return the records of the last call, ${n} bytes. Thread: owner */
const uint8_t *tls_stream_output(const struct tls_stream *st, size_t *n);

/* tls_stream_failure(st): return why ${st} failed. Thread: owner */
const struct tls_failure *tls_stream_failure(const struct tls_stream *st);

/*
 * tls_stream_note_reason(ssl, reason):
 * In a callback of the library that refuses the handshake: say why. The library would only say that
 * a callback failed.
 *
 * Thread: owner of the stream of ${ssl}
 */
void tls_stream_note_reason(const struct ssl_st *ssl, const char *reason);

#endif
