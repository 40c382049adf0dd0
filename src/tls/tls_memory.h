/*
 * tls/tls_memory: counts the memory that OpenSSL allocates, for max_memory and the statistics.
 *
 * note: batches. Each thread counts for itself, and adds its count to the sum when it reaches
 * TLS_MEMORY_BATCH bytes, up or down: the sum is wrong by less than that for each thread, and most
 * calls cost no atomic operation.
 */
#ifndef TLS_TLS_MEMORY_H
#define TLS_TLS_MEMORY_H

#include <stdint.h>

#include "base/must.h"

struct memory_account;

#define TLS_MEMORY_BATCH 16384

/*
 * tls_memory_count():
 * Count from now on. The library must not have allocated yet.
 *
 * Thread: main, before any other thread
 * Errors: 0; -EBUSY (too late: nothing is counted)
 */
int tls_memory_count(void) NODISCARD;

/*
 * tls_memory_bytes():
 * Bytes that the library has allocated now, with the allocator's rounding; see note: batches.
 *
 * Thread: any
 */
int64_t tls_memory_bytes(void);

/*
 * tls_memory_limit(account, max_bytes):
 * When the library has more than ${max_bytes}, report ${account} over its limit
 * (memory_account.over). NULL: no limit.
 *
 * Thread: any, one at a time
 * Owns:   ${account} must outlive all threads that use the library, or the next call
 */
void tls_memory_limit(struct memory_account *account, int64_t max_bytes);

#endif
