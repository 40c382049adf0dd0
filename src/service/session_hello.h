/*
 * service/session_hello: stage of the preface of a listener with routes: the client's address, its
 * first bytes and its ClientHello choose the upstream. The bytes are passed on unchanged. If that
 * upstream hashes the server name, the ClientHello is awaited even if no route asks for it.
 */
#ifndef SERVICE_SESSION_HELLO_H
#define SERVICE_SESSION_HELLO_H

#include <stdint.h>

#include "base/log.h"
#include "service/session_preface.h"

struct access_log_record;
struct route_client;
struct route_table;

/* Routes of a listener's generation, shared by its sessions. */
struct session_routes {
    struct route_table *table;
    int64_t timeout_ns; /* to receive the ClientHello, or other first bytes */
    struct log_limit log_limit, denied_limit;
};

extern const struct session_preface_stage session_hello_stage;

/*
 * session_hello_route(s, client):
 * Choose the upstream of ${s}: by route_table_find(), else the listener's. ${client} must be
 * complete, except its key.
 *
 * Thread: loop of ${s}, before service_ops.start()
 * Errors: 0; -ENOENT (neither exists); -EACCES (a route refuses the client)
 */
int session_hello_route(struct session *s, struct route_client *client) NODISCARD;

/*
 * session_hello_refuse(s, sni, error):
 * Log the cause ${error}, and abort ${s}. ${error}: as hello_handler_ops.done, or of
 * session_hello_route().
 *
 * Thread: loop of ${s}
 */
void session_hello_refuse(struct session *s, const char *sni, int error);

/*
 * session_hello_name(s):
 * The server name of the ClientHello, in lower case; NULL: none, or none was read.
 *
 * Thread: loop of ${s}
 */
const char *session_hello_name(const struct session *s);

/*
 * session_hello_describe(s, r):
 * Add the values of the ClientHello to ${r}, if it was read.
 *
 * Thread: loop of ${s}
 */
void session_hello_describe(const struct session *s, struct access_log_record *r);

#endif
