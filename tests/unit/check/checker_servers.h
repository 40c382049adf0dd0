/* check/checker_servers: servers that are checked, for the tests of check/checker. */
#ifndef UNIT_CHECK_CHECKER_SERVERS_H
#define UNIT_CHECK_CHECKER_SERVERS_H

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "check/checker_internal.h"
#include "unit/check/checker_on_loop.h"

#define INTERVAL_NS (20 * NS_PER_MS)

static unsigned max_under_way;
static struct checker_group_conf group_conf;
static struct checker_target_conf target_conf;

/* ---- what the kernel is asked for ---- */

#define CONNECTS 20000

static struct {
    unsigned host; /* the last number of an IPv4 address */
    unsigned port;
    int64_t at_ns;
} connects[CONNECTS];
static atomic_uint n_connects, most_under_way;
static atomic_int connect_error;
static atomic_uint connect_error_port; /* 0: any */

static inline bool fails(unsigned port)
{
    unsigned only = atomic_load(&connect_error_port);

    return atomic_load(&connect_error) != 0 && (only == 0 || only == port);
}

/* Every check connects once, on the loop. */
int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
    int (*next)(int, __CONST_SOCKADDR_ARG, socklen_t) = dlsym(RTLD_NEXT, "connect");
    unsigned n = atomic_load(&n_connects), port;
    struct sockaddr_in in;
    struct checker_load load;

    if (!loop || !loop_is_current(loop))
        return next(fd, addr, len);
    memcpy(&in, (const void *)addr.__sockaddr__, sizeof(in));
    port = in.sin_family == AF_INET ? ntohs(in.sin_port) : 0;
    if (n < CONNECTS) {
        connects[n].host = ntohl(in.sin_addr.s_addr) & 0xff;
        connects[n].port = port;
        connects[n].at_ns = clock_now_ns();
        atomic_store(&n_connects, n + 1);
    }
    checker_load(checker, &load);
    if (load.under_way > atomic_load(&most_under_way))
        atomic_store(&most_under_way, load.under_way);
    if (!fails(port))
        return next(fd, addr, len);
    errno = atomic_load(&connect_error);
    return -1;
}

/*
 * The clock of the loop's thread stands still while this is set: targets are added at one instant.
 */
static _Atomic int64_t still_at_ns;

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int64_t at_ns = atomic_load(&still_at_ns);

    if (at_ns == 0 || id != CLOCK_MONOTONIC || !loop || !loop_is_current(loop))
        return next(id, ts);
    ts->tv_sec = (time_t)(at_ns / NS_PER_S);
    ts->tv_nsec = (long)(at_ns % NS_PER_S);
    return 0;
}

static inline unsigned port_of(const struct address *a)
{
    return ntohs(a->u.in.sin_port);
}

/* ---- the checker, on its loop ---- */

static atomic_uint n_changes;

static struct {
    struct endpoint *endpoint;
    bool is_up;
} changes[100];
static atomic_bool remove_when_changed;

static inline void on_changed(void *cookie, struct endpoint *e, bool is_up)
{
    unsigned n = atomic_load(&n_changes);

    ck_assert_ptr_eq(cookie, &group_conf);
    ck_assert(loop_is_current(loop));
    ck_assert_uint_lt(n, ARRAY_LEN(changes));
    changes[n].endpoint = e;
    changes[n].is_up = is_up;
    if (atomic_load(&remove_when_changed))
        checker_remove(targets[e - endpoints]);
    atomic_store(&n_changes, n + 1);
}

static inline void do_create(void *arg)
{
    (void)arg;
    ck_assert_int_eq(checker_create(&checker, net, 1), 0);
    ck_assert_int_eq(checker_reserve(checker, max_under_way), 0);
    checker_set_limit(checker, max_under_way);
}

static inline void do_open(void *arg)
{
    (void)arg;
    ck_assert_int_eq(checker_group_create(&group, checker, &group_conf), 0);
    do_use(NULL);
}

static inline void do_add(void *arg)
{
    unsigned *n = arg;

    target_conf.endpoint = &endpoints[*n];
    if (!targets[*n])
        ck_assert_int_eq(checker_target_create(&targets[*n]), 0);
    ck_assert_int_eq(checker_add(targets[*n], group, &target_conf), 0);
}

static inline void do_add_all(void *arg)
{
    unsigned *n = arg;

    atomic_store(&still_at_ns, clock_now_ns());
    for (unsigned i = 0; i < *n; i++)
        do_add(&i);
    atomic_store(&still_at_ns, 0);
}

static inline void do_remove(void *arg)
{
    unsigned *n = arg;

    checker_remove(targets[*n]);
}

static inline bool has(unsigned n, enum endpoint_flag mark)
{
    return (endpoint_load(&endpoints[n]) & (uint32_t)mark) != 0;
}

static inline void setup(void)
{
    loop_setup();
    max_under_way = 16;
    rules_conf =
        (struct checker_rules_conf){.check = {.timeout_ns = 5 * NS_PER_S},
                                    .health = {.rise = 2, .fall = 3, .interval_ns = INTERVAL_NS}};
    group_conf =
        (struct checker_group_conf){.name = "back", .changed = on_changed, .cookie = &group_conf};
}

/* Begin to check the first ${n} endpoints. */
static inline void start(unsigned n)
{
    on_loop(do_create, 0);
    on_loop(do_open, 0);
    on_loop(do_add_all, n);
}

#endif
