/*
 * tls/tls_memory: counts the memory that OpenSSL allocates, for max_memory and the statistics.
 *
 * note: batches. Each thread counts for itself. When its count reaches plus or minus
 * TLS_MEMORY_BATCH bytes, the thread adds it to the sum. So most calls cost no atomic operation,
 * and the sum is wrong by less than TLS_MEMORY_BATCH per thread.
 */
#ifndef TLS_TLS_MEMORY_H
#define TLS_TLS_MEMORY_H

#include <stdint.h>

#include "base/must.h"

struct memory_account;

#define TLS_MEMORY_BATCH 16384

/*
 * tls_memory_count():
 * Start counting, before the library has allocated anything.
 *
 * Thread: main, before any other thread
 * Errors: 0; -EBUSY (too late: nothing is counted)
 */
int tls_memory_count(void) NODISCARD;

/*
 * tls_memory_bytes():
 * Return the bytes that the library has allocated now, with the allocator's rounding; see note:
 * batches.
 */
int64_t tls_memory_bytes(void);

/*
 * tls_memory_limit(account, max_bytes):
 * When the library has more than ${max_bytes}, report that ${account} is over its limit
 * (memory_account.over). ${account} NULL: no limit.
 *
 * Thread: any, one at a time
 * Owns:   ${account} must outlive all threads that use the library, or the next call
 */
void tls_memory_limit(struct memory_account *account, int64_t max_bytes);

#endif
