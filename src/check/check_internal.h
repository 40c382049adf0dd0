/* check/check_internal: shared by check.c and check_exchange.c. */
#ifndef CHECK_CHECK_INTERNAL_H
#define CHECK_CHECK_INTERNAL_H

#include "check/check.h"

/*
 * check_exchange(c):
 * Run the steps behind the CONNECT of the new connection, until one must wait.
 *
 * check_exchange_read(c, data, len) / check_exchange_eof(c) / check_exchange_broken(c, error):
 * Read part of an answer / the server has ended its stream / writing has failed.
 *
 * check_exchange_timer(c): the timer of the exchange.
 *
 * Thread: loop of ${c}
 */
void check_exchange(struct check *c);
void check_exchange_read(struct check *c, const uint8_t *data, size_t len);
void check_exchange_eof(struct check *c);
void check_exchange_broken(struct check *c, int error);
void check_exchange_timer(struct check *c);

/*
 * check_exchange_confirmed(c):
 * The server has confirmed the TLS handshake: pass, if nothing else is awaited.
 *
 * Thread: loop of ${c}
 */
void check_exchange_confirmed(struct check *c);

/*
 * check_decide(c, outcome) / check_reconnect(c):
 * End the check with ${outcome} / end the connection, and make that of the CONNECT c->at. Both only
 * while EXCHANGING.
 *
 * check_write(c, data, len): write; the tail handler reports a failure.
 *
 * check_due_ns(c): when the time of the check is over.
 *
 * Thread: loop of ${c}
 */
void check_decide(struct check *c, enum check_outcome outcome);
void check_reconnect(struct check *c);
void check_write(struct check *c, const uint8_t *data, size_t len);
int64_t check_due_ns(const struct check *c);

/* check_encode_header(c, out): write the PROXY header, if one is sent, and return its length. */
size_t check_encode_header(const struct check *c, uint8_t *out);

#endif
