/*
 * witness: sees on the wire what a proxy sends to its servers: every attempt to connect, and which
 * request went where. So nobody has to be believed, neither a log nor a counter, and all proxies
 * are judged alike.
 *
 * It reads from a packet socket what goes out on any interface. The kernel filters: SYNs to the
 * servers' two ports (requests and checks), and packets that begin with "GET ".
 */
#ifndef BENCH_WITNESS_H
#define BENCH_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request begins with "GET /small?" or "GET /large?" and its number in ten digits. */
#define WITNESS_REQUEST "GET /%s?%010u HTTP/1.1\r\n"

enum {
    WITNESS_SERVERS_MAX = 8,
    WITNESS_PORTS = 65536,
    WITNESS_REQUESTS_MAX = 1 << 26,
};

struct witness_conf {
    unsigned n_servers;
    uint32_t servers[WITNESS_SERVERS_MAX]; /* IPv4 addresses, network byte order */
    uint16_t port;                         /* where they answer requests */
    uint16_t check_port;                   /* and checks */
};

/* An attempt to connect; sent again by the kernel it is still one. */
struct witness_syn {
    uint64_t at_ns; /* monotonic clock */
    uint32_t seq;
    uint8_t server;
    bool is_check;
    bool has_request; /* one went over this connection */
};

struct witness {
    struct witness_conf conf;
    int fd;
    struct witness_syn *syns;
    size_t n_syns;
    size_t max_syns;
    /* Of each port that a proxy connects from: 1 + its last SYN to each server, 0 for none. */
    uint32_t last[WITNESS_SERVERS_MAX][WITNESS_PORTS];
    uint8_t *seen_at; /* of each request: 1 + the server it went to */
};

/*
 * witness_open(conf):
 * A witness that sees all from now on; its descriptor is readable when there is something to read.
 */
struct witness *witness_open(const struct witness_conf *conf);

/*
 * witness_read(w):
 * Take in what was seen so far.
 */
void witness_read(struct witness *w);

/*
 * witness_lost(w):
 * How many packets the kernel could not keep until they were read. Anything but 0 makes the rest
 * worthless.
 */
unsigned witness_lost(const struct witness *w);

/*
 * witness_server_of(w, request):
 * The server that request went to, -1 if it went to none.
 */
int witness_server_of(const struct witness *w, unsigned request);

#endif
