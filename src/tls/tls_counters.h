/*
 * tls/tls_counters: handshakes of a listener or upstream, by outcome.
 *
 * note: counters. Relaxed: no other memory depends on these numbers.
 */
#ifndef TLS_TLS_COUNTERS_H
#define TLS_TLS_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

struct tls_counters {
    _Atomic uint64_t full;
    _Atomic uint64_t resumed;
    _Atomic uint64_t failed;    /* by an alert, a broken record or an end of file */
    _Atomic uint64_t timed_out; /* handshake_timeout, waiting for a thread included */
    _Atomic uint64_t refused;   /* too many waited for a thread */
    _Atomic uint64_t truncated; /* streams that ended without close_notify */
};

/*
 * tls_count(c):
 * Add one to a counter.
 *
 * Thread: any
 */
static inline void tls_count(_Atomic uint64_t *c)
{
    atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

#endif
