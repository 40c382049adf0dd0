/*
 * support/timed: sessions with timeouts, and what their clients and servers say.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_TIMED_H
#define SUPPORT_TIMED_H

#include <stdalign.h>
#include <stdint.h>

#include "service/relay.h"
#include "support/host.h"

#define SESSIONS 200

/*
 * A session of two legs whose server is there from the beginning, or comes when the test says so.
 */
struct pair {
    alignas(CACHE_LINE_BYTES) struct channel client;
    struct relay to_server;
    alignas(CACHE_LINE_BYTES) struct channel server;
    struct relay to_client;
    struct session session;
};

struct timed {
    struct host host;
    struct pair *pairs[SESSIONS];
    int64_t server_idle_timeout_ns, server_closed_timeout_ns;
    int server_fd; /* of the session that comes next; -1: it has to wait */
    int client, server;
};

extern struct timed timed;

void timed_pair_connect(struct pair *p, int fd);

void timed_setup(void);

void timed_teardown(void);

void timed_connect_both(void);

/*
 * So long after ${at_ns} both sides hear the end: not earlier, and not so late that it would be
 * another timeout.
 */
void timed_expect_end_after(int64_t at_ns, int least_ms, enum session_reason reason);

#endif
