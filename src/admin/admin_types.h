/*
 * admin/admin_types: the interface, its sockets, clients and requests.
 *
 *   admin (one) --< admin_socket (listens)
 *         \--< admin_client (a connection) -- admin_request (the request under way)
 *
 * Used by the admin loop only, unless said otherwise.
 */
#ifndef ADMIN_ADMIN_TYPES_H
#define ADMIN_ADMIN_TYPES_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>

#include "admin/admin_ops.h"
#include "admin/admin_route.h"
#include "base/list.h"
#include "base/log.h"
#include "config/config.h"
#include "engine/lock.h"
#include "engine/promise.h"
#include "engine/timer.h"
#include "net/address.h"
#include "net/sock.h"

struct acceptor;
struct admin_history;
struct admin_http;
struct events;

/* Options that a reload may change. */
struct admin_settings {
    char token[ADMIN_TOKEN_MAX_BYTES + 1]; /* "": no token */
    int64_t request_timeout_ns;
    int64_t history_ns;
    unsigned max_connections;
    unsigned max_open; /* with those above max_connections */
    unsigned metrics_servers;
    bool write;
};

struct admin_socket {
    struct admin *admin;
    struct address address;
    struct acceptor *acceptor;
    int fd;
    struct sock_own_file own;
    /*
     * This process removes the file of the unix socket. The main thread changes this only before it
     * submits `leave`.
     */
    bool linked;
};

/* Connections over TCP, or over unix sockets: each kind has max_connections of its own. */
struct admin_places {
    unsigned n;
    unsigned n_cut; /* clients shut down and about to be closed */
};

struct admin {
    struct loop *loop;
    struct server *server;
    struct admin_ops ops;
    const struct socket_store *store;
    struct sock_file file; /* permissions of unix sockets */
    struct admin_socket *sockets;
    unsigned n_sockets;
    struct admin_http *http;
    struct task thread, start, leave, at_stop;
    time_t started_at;
    int64_t started_at_ns;
    struct promise finished; /* completed when `closing` is set and no connection is left */
    bool started, left;      /* used by the main thread */
    struct lock lock;        /* guards `settings` */
    struct admin_settings settings;
    atomic_int state;    /* enum admin_state; relaxed */
    bool closing;        /* accept no more connections; close each after its answer */
    struct list clients; /* struct admin_client, oldest first */
    struct admin_places tcp, unix_places;
    unsigned n_figures; /* requests with `has_figures` */
    struct log_limit token_limit;
    struct events *events;
    struct admin_history *history;
};

struct admin_client {
    struct list link;
    struct admin *admin;
    int fd; /* libmicrohttpd owns and closes it */
    bool begun;
    bool extra; /* accepted above max_connections */
    bool cut;
    bool has_token; /* a request had the token */
    unsigned n_requests;
    struct address local;
    char name[ADDRESS_TEXT_BYTES]; /* for logs: `uid 0 pid 7`, `127.0.0.1:4711` */
    bool is_unix;
    struct timer deadline;
    struct admin_request *request; /* NULL: between requests */
};

enum admin_request_state {
    ADMIN_REQUEST_READING,  /* receives the head or body */
    ADMIN_REQUEST_HANDLING, /* a handler will answer */
    ADMIN_REQUEST_ANSWERED  /* has its answer; the rest of the body is dropped */
};

/* Values from the head of a request. */
struct admin_head {
    const char *method;
    const char *host, *origin, *authorization; /* NULL: absent */
    const char *problem;                       /* why the head is refused; NULL: it is not */
};

struct admin_answer {
    unsigned status;
    const char *type;
    char *text;
    size_t n;
    const char *header, *value; /* a further header field; NULL: none */
    bool is_last;               /* close the connection behind it */
};

struct admin_request {
    struct admin_client *client;
    const struct admin_route *route; /* NULL until the head is accepted */
    enum admin_request_state state;
    bool suspended;   /* in libmicrohttpd, until the answer */
    bool queued;      /* the answer is being sent */
    bool untimed;     /* no request_timeout; see admin_wait() */
    bool has_figures; /* counted in `n_figures`: the answer may be large */
    void *connection; /* libmicrohttpd's; NULL until the head is complete */
    char *path;
    char *query; /* points into `path`; "": no query */
    char *body;
    size_t body_len; /* includes the dropped bytes of a body that is too long */
    json_t *fields;
    struct admin_answer answer;
    char allow[ADMIN_ROUTE_ALLOW_BYTES]; /* methods of the path */
    char note[64];
};

#endif
