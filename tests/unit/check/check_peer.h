/* check/check_peer: a check, and the server that it is made of, for the tests of check/check. */
#ifndef UNIT_CHECK_CHECK_PEER_H
#define UNIT_CHECK_CHECK_PEER_H

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"

#define LONG_NS  (10 * NS_PER_S)
#define SHORT_NS (100 * NS_PER_MS)

static struct loop *loop;
static struct netloop *net;
static struct check check;
static struct check_conf conf;
static struct check_script script;
static struct address addresses[2];
static unsigned n_addresses;
static unsigned before;
static atomic_uint outcomes;
static struct check_result result;
static bool inside;             /* check_start() or check_cancel() */
static atomic_bool start_again; /* from done(), once */

static inline void begin(void *arg)
{
    (void)arg;
    inside = true;
    check_start(&check, &script, addresses, n_addresses);
    inside = false;
}

static inline void on_done(struct check *c)
{
    bool again = atomic_exchange(&start_again, false);

    ck_assert_ptr_eq(c, &check);
    ck_assert(loop_is_current(loop));
    ck_assert(!inside);
    result = c->result;
    if (again)
        begin(NULL);
    atomic_fetch_add(&outcomes, 1);
}

static inline void prepare(void *arg)
{
    (void)arg;
    check_init(&check, net, on_done);
}

static inline void cancel(void *arg)
{
    (void)arg;
    inside = true;
    check_cancel(&check);
    check_cancel(&check);
    inside = false;
}

static inline void setup(void)
{
    before = process_descriptors();
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    loop_runner_call(loop, prepare, NULL);
    n_addresses = 1;
    conf = (struct check_conf){.timeout_ns = LONG_NS};
}

static inline void teardown(void)
{
    loop_runner_call(loop, cancel, NULL);
    loop_runner_destroy(loop);
    netloop_destroy(net);
    check_script_end(&script);
    ck_assert_uint_eq(process_descriptors(), before);
}

static inline struct check_bytes bytes(const char *text)
{
    return (struct check_bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

static inline void prepare_script(void)
{
    check_script_end(&script);
    ck_assert_int_eq(check_script_init(&script, &conf), 0);
}

/* Check for an answer that has ${expect} in it, after having sent ${send}. */
static inline void check_now(const char *send, const char *expect)
{
    conf.send = bytes(send);
    conf.expect = bytes(expect);
    prepare_script();
    loop_runner_call(loop, begin, NULL);
}

/* The ${n}th outcome there was, and its words. */
static inline void expect_nth(unsigned n, enum check_outcome outcome, const char *text)
{
    char described[CHECK_TEXT_BYTES];

    UNTIL(atomic_load(&outcomes) == n);
    ck_assert_str_eq(check_describe(described, sizeof(described), &result), text);
    ck_assert_int_eq(result.outcome, outcome);
}

static inline void expect_outcome(enum check_outcome outcome, const char *text)
{
    expect_nth(1, outcome, text);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&outcomes), 1);
}

static inline void expect_late(int64_t timeout_ns)
{
    ck_assert_int_ge(result.duration_ns, timeout_ns);
    ck_assert_int_lt(result.duration_ns, timeout_ns + 5 * NS_PER_S);
}

static inline unsigned port_of(const struct address *a)
{
    return ntohs(a->u.in.sin_port);
}

/* Connections to ${port} of which this host is the client, and that are in TIME_WAIT. */
static inline unsigned time_waits(unsigned port)
{
    FILE *f = fopen("/proc/net/tcp", "r");
    unsigned n = 0, remote, state;
    char line[256];

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f))
        n += sscanf(line, " %*u: %*x:%*x %*x:%x %x", &remote, &state) == 2 && remote == port &&
             state == 6;
    fclose(f);
    return n;
}

static inline int listen_unix(struct address *a, int backlog)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sockets_path(a, "server");
    ck_assert_int_eq(bind(fd, &a->u.sa, a->len), 0);
    ck_assert_int_eq(listen(fd, backlog), 0);
    return fd;
}

static atomic_int connect_error;

/* In the place of the kernel, which may be out of ports. */
int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
    int (*next)(int, __CONST_SOCKADDR_ARG, socklen_t) = dlsym(RTLD_NEXT, "connect");

    if (atomic_load(&connect_error) == 0)
        return next(fd, addr, len);
    errno = atomic_load(&connect_error);
    return -1;
}

#endif
