#include "support/renamed.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/executor.h"
#include "names/resolver_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/until.h"
#include "upstream/upstream_change.h"

struct renamed renamed;
static struct upstream_change *changes[UPSTREAMS]; /* NULL: no other configuration */

/* Address i of name n has the port 1000 + 100 n + i, and ${shift} more. */
static int look_up(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    unsigned n = (unsigned)atoi(word);
    int answer;

    atomic_fetch_add(&renamed.lookups[n], 1);
    atomic_fetch_add(&renamed.running, 1);
    terms->ttl_ns = CLOCK_NEVER;
    while ((answer = atomic_load(&renamed.answers[n])) == SILENT)
        usleep(500);
    ck_assert_uint_ge(max, 16);
    for (int i = 0; i < answer; i++)
        sockets_loopback(&out[i], 1000 + 100 * n + (unsigned)i + atomic_load(&renamed.shift));
    atomic_fetch_sub(&renamed.running, 1);
    return answer;
}

static bool leads_back(const struct proxy_loop *p, const char *name, const struct address *a)
{
    ck_assert_int_gt(atomic_load(&p->references), 0);
    ck_assert_int_eq(name[0], 'u');
    return ntohs(a->u.in.sin_port) == p->port;
}

static void hold(struct proxy_loop *p)
{
    atomic_fetch_add(&p->references, 1);
}

static void release(struct proxy_loop *p)
{
    if (p)
        ck_assert_int_gt(atomic_fetch_sub(&p->references, 1), 0);
}

void renamed_setup(void)
{
    struct executor_conf exec = {
        .name = "exec", .pool = 3, .threads = THREADS, .max_pending_tasks = 16};

    log_lines_capture(LOG_LEVEL_INFO);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        snprintf(renamed.texts[i], sizeof(renamed.texts[i]), "%u", i);
        snprintf(renamed.names[i], sizeof(renamed.names[i]), "u%u", i);
        renamed.now[i] = &renamed.pool[renamed.n_pool++];
        renamed.now[i]->lines[0] = (struct upstream_server_conf){
            .id = "s", .address_text = renamed.texts[i], .names = UPSTREAM_NAME_EACH, .weight = 3};
        renamed.now[i]->conf = (struct upstream_conf){.name = renamed.names[i],
                                                      .servers = renamed.now[i]->lines,
                                                      .n_servers = 1,
                                                      .connect_timeout_ns = NS_PER_S};
        atomic_store(&renamed.answers[i], 1);
    }
    renamed.conf = (struct resolver_conf){.retry_ns = LATER,
                                          .service_ns = LATER,
                                          .lookup = look_up,
                                          .leads_back = leads_back,
                                          .hold = hold,
                                          .release = release};
    ck_assert_int_eq(executor_create(&renamed.executor, &exec), 0);
    renamed.control = loop_runner_create();
}

static void on_ready(void *cookie, int error)
{
    ck_assert_ptr_eq(cookie, &renamed.change);
    ck_assert(loop_is_current(renamed.control));
    atomic_store(&renamed.ready_error, error);
    atomic_fetch_add(&renamed.n_ready, 1);
}

static unsigned list_of(unsigned bits, struct upstream_next *list)
{
    unsigned n = 0;

    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (bits & 1u << i)
            list[n++] = (struct upstream_next){renamed.upstreams[i], &renamed.now[i]->conf};
    return n;
}

int renamed_try_prepare(void *cookie)
{
    struct wanted *w = cookie;
    struct upstream_next list[UPSTREAMS];
    struct resolver_next next = {.list = list,
                                 .n = list_of(w->bits, list),
                                 .listeners = w->listeners,
                                 .wait_ns = w->wait_ns,
                                 .ready = on_ready,
                                 .cookie = &renamed.change};

    return resolver_prepare(renamed.resolver, &next, &renamed.change);
}

static void do_prepare(void *arg)
{
    unsigned before = atomic_load(&renamed.n_ready);
    struct wanted *w = arg;

    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (renamed.is_other[i] && !changes[i])
            ck_assert_int_eq(
                upstream_change_prepare(&changes[i], renamed.upstreams[i], &renamed.now[i]->conf),
                0);
    w->rc = renamed_try_prepare(w);
    ck_assert_uint_eq(atomic_load(&renamed.n_ready), before); /* later */
}

static void commit_upstream(unsigned i)
{
    struct membership_place places[RESOLVER_ADDRESSES];
    unsigned n =
        resolver_find_places(renamed.change, renamed.upstreams[i], renamed.now[i]->lines, places);

    if (n > 0)
        ck_assert_int_eq(
            upstream_change_places(changes[i], upstream_change_line(changes[i], "s"), places, n),
            0);
    ck_assert_int_eq(upstream_change_build(changes[i]), 0);
    upstream_change_commit(changes[i]);
    changes[i] = NULL;
    renamed.is_other[i] = false;
}

static void do_commit(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (changes[i])
            commit_upstream(i);
    resolver_commit(renamed.change);
}

static void do_cancel(void *arg)
{
    (void)arg;
    resolver_cancel(renamed.change);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        upstream_change_cancel(changes[i]);
        changes[i] = NULL;
    }
}

int renamed_prepare_with(unsigned bits, int64_t wait_ns, struct proxy_loop *p)
{
    struct wanted w = {.bits = bits, .wait_ns = wait_ns, .listeners = p};

    loop_runner_call(renamed.control, do_prepare, &w);
    return w.rc;
}

void renamed_prepare(unsigned bits)
{
    ck_assert_int_eq(renamed_prepare_with(bits, UNTIL_LIMIT_NS, &renamed.listeners[0]), 0);
}

void renamed_until_ready(unsigned n)
{
    UNTIL(atomic_load(&renamed.n_ready) == n);
}

void renamed_commit(void)
{
    loop_runner_call(renamed.control, do_commit, NULL);
}

void renamed_cancel(void)
{
    loop_runner_call(renamed.control, do_cancel, NULL);
}

static void do_create(void *arg)
{
    unsigned *i = arg;

    ck_assert_int_eq(upstream_create(&renamed.upstreams[*i], &renamed.now[*i]->conf, NULL), 0);
}

static atomic_bool is_started;

static void on_first(void *cookie, int error)
{
    (void)cookie;
    ck_assert_int_eq(error, 0);
    resolver_commit(renamed.change);
    atomic_store(&is_started, true);
}

static void do_begin(void *arg)
{
    struct upstream_next list[UPSTREAMS];
    const struct resolver_next next = {.list = list,
                                       .n = list_of(1, list),
                                       .listeners = &renamed.listeners[0],
                                       .is_first = true,
                                       .wait_ns = UNTIL_LIMIT_NS,
                                       .ready = on_first};

    (void)arg;
    ck_assert_int_eq(resolver_prepare(renamed.resolver, &next, &renamed.change), 0);
}

void renamed_start(void)
{
    for (unsigned i = 0; i < UPSTREAMS; i++)
        do_create(&i);
    renamed.conf.executor = renamed.executor;
    renamed.conf.control = renamed.control;
    ck_assert_int_eq(resolver_create(&renamed.resolver, &renamed.conf), 0);
    loop_runner_call(renamed.control, do_begin, NULL);
    UNTIL(atomic_load(&is_started));
    loop_runner_turn(renamed.control); /* the answers are used now */
}

static void end_threads(void)
{
    loop_runner_stop(renamed.control);
    executor_stop(renamed.executor, 0);
    ck_assert_int_eq(executor_join(renamed.executor, UNTIL_LIMIT_NS), 0);
}

void renamed_teardown(void)
{
    for (unsigned i = 0; i < UPSTREAMS; i++)
        if (atomic_load(&renamed.answers[i]) == SILENT)
            atomic_store(&renamed.answers[i], 1);
    end_threads();
    resolver_destroy(renamed.resolver);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(atomic_load(&renamed.listeners[i].references), 0);
    for (unsigned i = 0; i < UPSTREAMS; i++)
        upstream_destroy(renamed.upstreams[i]);
    executor_destroy(renamed.executor);
    loop_runner_destroy(renamed.control);
}

void renamed_do_look(void *arg)
{
    struct look *l = arg;
    const struct server_set *set = membership_now(&renamed.upstreams[l->upstream]->membership);

    for (unsigned i = 0; i < set->n; i++) {
        struct endpoint_addresses *at = endpoint_hold_addresses(&set->servers[i]->endpoint);

        if (at && l->n++ == 0)
            l->port = ntohs(at->list[0].u.in.sin_port);
        endpoint_release_addresses(at);
    }
}

unsigned renamed_known(unsigned i)
{
    struct look l = {.upstream = i};

    loop_runner_call(renamed.control, renamed_do_look, &l);
    return l.n;
}
