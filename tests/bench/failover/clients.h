/*
 * clients: HTTP clients that keep a book of every request. Two kinds, as many of each: one keeps
 * its connection as long as it lasts, the other makes a new one for each request.
 *
 * Each has one request under way, and begins the next when it has its answer; after a failure it
 * rests a moment first, and after an answer if it is told to.
 * Every byte of an answer is checked. Every fourth request is for the large file.
 */
#ifndef BENCH_CLIENTS_H
#define BENCH_CLIENTS_H

#include "load/histogram.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

enum client_kind { CLIENT_KEEPING, CLIENT_FRESH, CLIENT_KINDS };

extern const char *const client_kind_names[CLIENT_KINDS];

struct clients_conf {
    struct sockaddr_in target;
    unsigned of_each_kind;
    uint64_t limit_ns; /* of the client's patience */
    uint64_t slow_ns;  /* a wait that is counted */
    uint64_t pause_ns; /* between an answer and the next request; 0: none */
};

/* A request that failed. Instants are of the monotonic clock. */
struct failure {
    enum client_kind kind;
    unsigned request;
    uint64_t opened_ns; /* its connection */
    uint64_t begun_ns;
    uint64_t ended_ns;
    char server; /* the letter in the answers that came before on its connection, '-' for none */
    const char *what;
};

/* What became of the requests of a kind. */
struct client_book {
    uint64_t done;
    uint64_t slow;
    struct histogram waits; /* of all, failed ones too */
};

struct clients {
    struct clients_conf conf;
    int epfd;
    struct client *all;
    unsigned n;
    unsigned n_requests;
    struct client_book books[CLIENT_KINDS];
    struct failure *failures;
    size_t n_failures;
    size_t max_failures;
};

/*
 * clients_open(c, conf, epfd):
 * Make the clients, and have them begin. Events of ${epfd} whose pointer is not NULL are theirs.
 */
void clients_open(struct clients *c, const struct clients_conf *conf, int epfd);

/*
 * clients_event(c, cookie, events):
 * The event of ${epfd} with the pointer ${cookie} is for one of them.
 */
void clients_event(struct clients *c, void *cookie, uint32_t events);

/*
 * clients_look(c):
 * Once in some milliseconds: give up what took too long, let those go on that have rested.
 */
void clients_look(struct clients *c);

/*
 * clients_now_ns():
 * The monotonic clock.
 */
uint64_t clients_now_ns(void);

#endif
