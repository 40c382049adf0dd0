/*
 * load: a run of the load generator: one thread, one epoll, N connections, and these phases:
 *
 *   1. first     one connection is opened and used, so that the server has touched all it needs at
 *                all; its memory is read.
 *   2. opening   all the others, not too many at a time; each is settled once it has been used.
 *   3. warm-up   the load runs, nothing is counted.
 *   4. measured  counters begin at 0; CPU time of the server is read at both ends.
 *   5. finished  the mode's last word (stream: the receipts).
 *
 * Every phase has an end in time, whatever the server does. What a connection does is the mode's
 * matter.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "load/histogram.h"
#include "load/options.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

struct load;

struct conn {
    int fd;
    uint32_t seed;     /* of its pattern */
    uint32_t interest; /* what epoll watches */
    bool is_settled;
    bool is_offering;     /* TLS: a session to be resumed */
    SSL *ssl;             /* NULL: plain */
    SSL_SESSION *session; /* the last one that the server gave */
    uint64_t end;         /* offset in the stream at which the current message ends */
    uint64_t sent;        /* offset in the stream up to which it has been sent */
    uint64_t received;    /* and been received back */
    uint64_t begun_ns;    /* when the current message was begun */
    uint64_t due_ns;      /* when the next one is to be begun; pace only */
};

/* One thing to do with connections. */
struct load_mode {
    const char *name;
    uint32_t interest; /* of a new connection */
    /* The connection was opened; it may still be connecting (see net_connect). */
    void (*start)(struct load *load, struct conn *conn);
    void (*event)(struct load *load, struct conn *conn, uint32_t events);
    /* Begin what is due; returns when to be called next, at the latest. May be NULL. */
    uint64_t (*tick)(struct load *load, uint64_t now_ns);
    /* The measured time is over. May be NULL. */
    void (*finish)(struct load *load, struct conn *conn);
};

extern const struct load_mode load_pingpong;
extern const struct load_mode load_churn;
extern const struct load_mode load_pace;
extern const struct load_mode load_idle;
extern const struct load_mode load_stream;
extern const struct load_mode load_fetch;

enum load_phase { LOAD_FIRST, LOAD_OPENING, LOAD_WARMUP, LOAD_MEASURED, LOAD_FINISHED };

struct load {
    struct options opts;
    const struct load_mode *mode;
    enum load_phase phase;
    int epfd;
    struct conn *conns;
    unsigned opened;
    unsigned settled;
    uint64_t phase_end_ns;
    uint64_t measure_begin_ns;

    /* The result. */
    uint64_t ops;
    uint64_t bytes; /* one way: an echoed byte counts once */
    uint64_t measured_ns;
    uint64_t server_cpu_ns;
    uint64_t first_pss_kb; /* after the first connection */
    uint64_t last_pss_kb;  /* at the end of the measured time */
    struct histogram latency;
};

/*
 * load_run(load):
 * Run all phases with load->opts and load->mode set; the result is in ${load}. Failures are fatal.
 */
void load_run(struct load *load);

/*
 * load_open(load, conn):
 * Begin to connect ${conn} anew and let the mode start it.
 */
void load_open(struct load *load, struct conn *conn);

/*
 * load_settle(load, conn):
 * The mode says that ${conn} is open and has been used. Only the first time counts.
 */
void load_settle(struct load *load, struct conn *conn);

/*
 * load_want(load, conn, interest):
 * Let epoll watch ${conn} for these events.
 */
void load_want(struct load *load, struct conn *conn, uint32_t interest);

/*
 * load_lost(conn, what):
 * Die: the connection ended although nobody meant it to; errno says why when it is not 0.
 */
_Noreturn void load_lost(const struct conn *conn, const char *what);

/*
 * load_now_ns():
 * The monotonic clock.
 */
uint64_t load_now_ns(void);

#endif
