/*
 * tls/tls_counters: handshakes of a listener or upstream, by outcome.
 *
 * note: counters. Relaxed order suffices: no other memory depends on these numbers.
 */
#ifndef TLS_TLS_COUNTERS_H
#define TLS_TLS_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

struct figure_table;

struct tls_counters {
    _Atomic uint64_t full;
    _Atomic uint64_t resumed;
    _Atomic uint64_t failed;
    _Atomic uint64_t timed_out;
    _Atomic uint64_t refused;
    _Atomic uint64_t truncated;
};

/* tls_count(c): add one to a counter. */
static inline void tls_count(_Atomic uint64_t *c)
{
    atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* Figures of a live struct tls_counters. */
extern const struct figure_table tls_counters_figures;

#endif
