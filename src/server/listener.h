/*
 * server/listener: a named set of listen addresses and their service.
 *
 * Each address has one acceptor on a boss loop (reuseport = N: N).
 */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "handlers/pipeline_conf.h"
#include "handlers/proxy_protocol.h"
#include "limits/acl.h"
#include "limits/admission.h"
#include "limits/client_table.h"
#include "limits/throttle.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/sock.h"
#include "service/service.h"

struct arena;
struct executor;
struct access_log_format;
struct access_log;
struct listener;
struct loop_group;
struct connection_limit;
struct session;
struct upstream;

struct listener_access_log_conf {
    const char *where; /* off, stderr, syslog, journal or an absolute path */
    const struct access_log_format *format;
    int64_t interval_ns;
};

enum listener_service { LISTENER_ECHO, LISTENER_PROXY };

struct listener_conf {
    struct arena *memory; /* of all that is pointed at below; NULL: static. See arena_hold() */
    const char *name;
    struct address *addresses;
    unsigned n_addresses;
    enum listener_service service;
    const char *upstream; /* NULL unless service is LISTENER_PROXY */
    const char *mirror;   /* upstream that gets a copy of the clients' bytes; NULL: none */
    unsigned mirror_buffer_bytes;
    struct pipeline_conf pipeline;
    struct listener_access_log_conf access_log;
    struct proxy_protocol_conf accept_proxy;
    unsigned backlog;
    unsigned reuseport; /* listen sockets per address */
    struct sock_file unix_file;
    struct sock_options socket;
    struct acl_conf access;
    enum admission_verdict on_deny;
    struct session_conf session;
    struct quota_conf quota;
    struct client_table_conf clients; /* with the limits per client */
    enum quota_over over_limit;
    struct throttle_conf bandwidth;
};

struct listener_env {
    struct loop_group *boss;
    unsigned accept_batch;
    struct upstream *upstream; /* proxy only */
    struct upstream *mirror;   /* NULL: none */
    struct executor *executor;
    struct connection_limit *room; /* of the process */
    struct access_log *access_log; /* NULL: conf->access_log.where is off */
    /* As acceptor_ops.admit, for a session with ${descriptors}. On a boss loop. */
    int64_t (*admit)(void *cookie, unsigned descriptors);
    /* On a boss loop; the callee owns ${s}. */
    void (*accepted)(void *cookie, struct session *s);
    /* Once per socket after listener_stop(), on any thread. */
    void (*stopped)(void *cookie);
    void *cookie;
};

/*
 * listener_create(out, conf, env):
 * Bind and listen on all addresses, without accepting. Failures are logged.
 *
 * Thread: main
 * Owns:   ${conf} and pointers in ${env} are borrowed
 * Errors: 0; -ENOMEM; as sock_listen()
 */
int listener_create(struct listener **out, const struct listener_conf *conf,
                    const struct listener_env *env) NODISCARD;

/*
 * listener_start(ls):
 * Begin to accept.
 *
 * Thread: main
 * Errors: 0; -EAGAIN (no thread could be started)
 */
int listener_start(struct listener *ls) NODISCARD;

/*
 * listener_stop(ls):
 * Close the sockets on their boss loops; env->stopped() follows. Call it once.
 *
 * Thread: main
 */
void listener_stop(struct listener *ls);

/*
 * listener_left(s):
 * Release the place of ${s} in the connection limits.
 *
 * Thread: any
 */
void listener_left(const struct session *s);

/*
 * listener_sockets(ls):
 * Number of listen sockets.
 *
 * Thread: any
 */
unsigned listener_sockets(const struct listener *ls);

/*
 * listener_log_stats(ls):
 * As counters_log().
 *
 * Thread: any
 */
void listener_log_stats(const struct listener *ls);

/*
 * listener_destroy(ls):
 * Free ${ls} and its sockets; NULL is allowed.
 *
 * Thread: main, while no boss loop runs
 */
void listener_destroy(struct listener *ls);

#endif
