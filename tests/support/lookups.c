#include "support/lookups.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/executor.h"
#include "names/resolver_internal.h"
#include "net/srv.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"

struct lookups lookups = {.upstream_conf = {.name = "back",
                                            .servers = lookups.server_confs,
                                            .connect_timeout_ns = NS_PER_S,
                                            .resolve_hold_ns = CLOCK_NEVER}};
static struct resolver_next next;

static struct proxy_loop {
    atomic_int references;
} listeners;

struct upstream_server *lookups_server_at(unsigned i)
{
    return membership_now(&lookups.upstream->membership)->servers[i];
}

static int look_up(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    unsigned n = (unsigned)atoi(word), at_once = atomic_fetch_add(&lookups.running, 1) + 1;
    unsigned most = atomic_load(&lookups.most_running);
    int answer;

    while (most < at_once && !atomic_compare_exchange_weak(&lookups.most_running, &most, at_once))
        ;
    atomic_store(&lookups.looked_up_at_ns, clock_now_ns());
    if (atomic_fetch_add(&lookups.lookups[n], 1) == 0)
        atomic_store(&lookups.first_order[n], atomic_fetch_add(&lookups.order, 1) + 1);
    else if (atomic_load(&lookups.second_at_ns[n]) == 0)
        atomic_store(&lookups.second_at_ns[n], clock_now_ns());
    terms->ttl_ns = atomic_load(&lookups.ttl_ns);
    while ((answer = atomic_load(&lookups.answers[n])) == SILENT ||
           (atomic_load(&lookups.lookups[n]) > 1 && atomic_load(&lookups.only_once)))
        usleep(500);
    ck_assert_uint_ge(max, 16);
    for (int i = 0; i < answer; i++)
        sockets_loopback(&out[i], 1000 + 100 * n + (unsigned)i + atomic_load(&lookups.shift));
    atomic_fetch_sub(&lookups.running, 1);
    return answer;
}

static bool leads_back(const struct proxy_loop *p, const char *name, const struct address *a)
{
    ck_assert_ptr_eq(p, &listeners);
    ck_assert_str_eq(name, "back");
    return ntohs(a->u.in.sin_port) == atomic_load(&lookups.loop_port);
}

static void hold(struct proxy_loop *p)
{
    atomic_fetch_add(&p->references, 1);
}

static void release(struct proxy_loop *p)
{
    if (p)
        atomic_fetch_sub(&p->references, 1);
}

void lookups_setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    atomic_store(&lookups.ttl_ns, CLOCK_NEVER);
    lookups.conf = (struct resolver_conf){.retry_ns = LATER,
                                          .service_ns = LATER,
                                          .lookup = look_up,
                                          .leads_back = leads_back,
                                          .hold = hold,
                                          .release = release};
    lookups.control = loop_runner_create();
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(lookups.texts[i], sizeof(lookups.texts[i]), "%u", i);
        snprintf(lookups.ids[i], sizeof(lookups.ids[i]), i > 0 ? "s%u" : "s", i);
        lookups.server_confs[i] = (struct upstream_server_conf){.id = lookups.ids[i],
                                                                .address_text = lookups.texts[i],
                                                                .names = UPSTREAM_NAME_ONE,
                                                                .weight = 1};
        atomic_store(&lookups.answers[i], 1);
    }
}

void lookups_create(unsigned n, unsigned threads)
{
    struct executor_conf exec = {
        .name = "exec", .pool = 3, .threads = threads, .max_pending_tasks = 16};

    lookups.upstream_conf.n_servers = n;
    ck_assert_int_eq(executor_create(&lookups.executor, &exec), 0);
    ck_assert_int_eq(upstream_create(&lookups.upstream, &lookups.upstream_conf, NULL), 0);
    lookups.conf.executor = lookups.executor;
    lookups.conf.control = lookups.control;
    ck_assert_int_eq(resolver_create(&lookups.resolver, &lookups.conf), 0);
    lookups.upstream_next = (struct upstream_next){lookups.upstream, &lookups.upstream_conf};
    next = (struct resolver_next){.list = &lookups.upstream_next, .n = 1, .listeners = &listeners};
}

static struct resolver_change *change;
static atomic_int start_rc; /* 1: not ready yet */
static atomic_bool ready;

static void on_ready(void *cookie, int error)
{
    (void)cookie;
    start_rc = error;
    if (error < 0)
        resolver_cancel(change);
    else
        resolver_commit(change);
    atomic_store(&ready, true);
}

static void do_begin(void *arg)
{
    (void)arg;
    start_rc = resolver_prepare(lookups.resolver, &next, &change);
}

int lookups_try_start(int64_t wait_ns)
{
    next.is_first = true;
    next.ready = on_ready;
    next.wait_ns = wait_ns;
    loop_runner_call(lookups.control, do_begin, NULL);
    if (start_rc < 0)
        return start_rc;
    UNTIL(atomic_load(&ready));
    loop_runner_turn(lookups.control); /* the answers are used now */
    return start_rc;
}

void lookups_start(unsigned n, int64_t wait_ns)
{
    lookups_create(n, 4);
    ck_assert_int_eq(lookups_try_start(wait_ns), 0);
}

void lookups_end_control(void)
{
    loop_runner_stop(lookups.control);
}

void lookups_end_executor(void)
{
    executor_stop(lookups.executor, 0);
    ck_assert_int_eq(executor_join(lookups.executor, UNTIL_LIMIT_NS), 0);
}

void lookups_teardown(void)
{
    lookups_end_control();
    lookups_end_executor();
    resolver_destroy(lookups.resolver);
    ck_assert_int_eq(atomic_load(&listeners.references), 0);
    upstream_destroy(lookups.upstream);
    executor_destroy(lookups.executor);
    loop_runner_destroy(lookups.control);
    UNTIL(process_loops() == 0);
}

/* What is known is replaced on the control loop, which is the one to look. */
struct look {
    unsigned server, n, port;
};

static void look(void *arg)
{
    struct look *l = arg;
    struct endpoint *e = &lookups_server_at(l->server)->endpoint;
    struct endpoint_addresses *at = endpoint_hold_addresses(e);

    ck_assert_int_eq((endpoint_load(e) & ENDPOINT_ABSENT) != 0, at == NULL);
    l->n = at ? at->n : 0;
    l->port = l->n > l->port ? ntohs(at->list[l->port].u.in.sin_port) : 0;
    endpoint_release_addresses(at);
}

unsigned lookups_known(unsigned n)
{
    struct look l = {.server = n};

    loop_runner_call(lookups.control, look, &l);
    return l.n;
}

bool lookups_is_known(unsigned n)
{
    return lookups_known(n) > 0;
}

unsigned lookups_port_of(unsigned n, unsigned i)
{
    struct look l = {.server = n, .port = i};

    loop_runner_call(lookups.control, look, &l);
    return l.port;
}

void lookups_read_due(void *arg)
{
    int64_t *due_at_ns = arg;

    list_for_each (node, &lookups.resolver->names)
        *due_at_ns++ = LIST_ENTRY(node, struct resolver_name, link)->pause.at_ns;
}

void lookups_pass_lookups(unsigned n, unsigned more)
{
    unsigned before = atomic_load(&lookups.lookups[n]);

    UNTIL(atomic_load(&lookups.lookups[n]) > before + more); /* the one before was answered */
}

/* ---- names of several servers ---- */

static struct srv_record records[RESOLVER_ADDRESSES / ENDPOINT_ADDRESSES + 1];

int lookups_look_up_service(struct srv_record *out, size_t max, const char *name,
                            struct dns_terms *terms)
{
    int n = atomic_load(&lookups.n_records);

    terms->ttl_ns = CLOCK_NEVER;
    ck_assert_uint_ge(max, ARRAY_LEN(records));
    ck_assert_str_eq(name, "0");
    for (int i = 0; i < n; i++)
        out[i] = records[i];
    return n;
}

void lookups_name_is(unsigned n, enum upstream_names names)
{
    lookups.server_confs[n].names = names;
}

void lookups_record(unsigned i, const char *target, unsigned priority, unsigned weight)
{
    snprintf(records[i].target, sizeof(records[i].target), "%s", target);
    records[i].priority = (uint16_t)priority;
    records[i].weight = (uint16_t)weight;
}

void lookups_start_service(int n)
{
    lookups.conf.lookup_service = lookups_look_up_service;
    lookups_name_is(0, UPSTREAM_SERVICE);
    atomic_store(&lookups.n_records, n);
    lookups_start(1, UNTIL_LIMIT_NS);
}
