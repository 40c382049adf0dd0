/*
 * service/session_key: what the hashing kinds of balancer know a client by (hash_key).
 */
#ifndef SERVICE_SESSION_KEY_H
#define SERVICE_SESSION_KEY_H

#include <stdint.h>

struct session;
struct upstream_hash_key;

/*
 * session_key_by(s, key):
 * Hash of what ${key} names of the client of ${s}. A client without it: session_key().
 *
 * Thread: loop of ${s}
 */
uint64_t session_key_by(struct session *s, const struct upstream_hash_key *key);

#endif
