/*
 * stress/names: configurations of upstreams follow one another, or are given up, while their names
 * are looked up, their servers checked, and two workers pick servers of upstreams that they keep
 * for a while. Sanitizers see what is used too late or left.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/executor.h"
#include "engine/grace.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "engine/promise.h"
#include "names/resolver.h"
#include "net/dns.h"
#include "server/checks.h"
#include "server/upstreams.h"
#include "stress/drawn_conf.h"
#include "stress/stress.h"
#include "support/sockets.h"
#include "upstream/upstream.h"

#define WORKERS  2
#define SESSIONS 32 /* of each worker */

/* What workers read. */
struct generation {
    struct upstream *list[UPSTREAMS]; /* users */
    unsigned n;
};

struct session {
    struct upstream *up; /* a user; NULL: none */
    struct upstream_server *server;
};

struct picker {
    struct task task;
    struct loop *loop;
    unsigned seed;
    struct session sessions[SESSIONS];
};

/* The resolver holds it while it is needed. */
struct proxy_loop {
    atomic_int references;
};

static struct proxy_loop listeners;
static int fds[PORTS];
static struct loop_group *workers;
static struct loop *control;
static struct executor *executor;
static struct upstreams *upstreams;
static struct resolver *resolver;
static struct checks *checks;
static struct picker pickers[WORKERS];
static _Atomic(struct generation *) generation;
static atomic_bool over;
static atomic_ullong n_picks;

/* Of the control loop. */
static uint64_t load, n_commits, n_cancels;
static struct upstreams_change *upstreams_change;
static struct resolver_change *resolver_change;
static struct timer step;
static struct promise done;

/* ---- names ---- */

/* One address in a family that is often the same, or an error. */
static int look_up(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    static atomic_uint counter;
    unsigned random = atomic_fetch_add(&counter, 1) * 2654435761u, first = random >> 8;
    int n = 1 + (int)(random >> 16) % PORTS;

    (void)max;
    terms->ttl_ns = CLOCK_NEVER;
    if (random >> 28 == 0)
        return -ENOENT;
    if (random >> 28 == 1)
        usleep(2000);
    for (int i = 0; i < n; i++)
        out[i] = ports[(first + (unsigned)i + (unsigned)word[0]) % PORTS];
    return n;
}

static bool leads_back(const struct proxy_loop *p, const char *upstream, const struct address *a)
{
    STRESS_CHECK(atomic_load(&p->references) > 0 && upstream[0] == 'u');
    return a->len == 0;
}

static void hold(struct proxy_loop *p)
{
    atomic_fetch_add(&p->references, 1);
}

static void release(struct proxy_loop *p)
{
    if (p)
        STRESS_CHECK(atomic_fetch_sub(&p->references, 1) > 0);
}

/* ---- changes, on the control loop ---- */

static unsigned find_places(const void *cookie, const struct upstream *up,
                            const struct upstream_server_conf *line, struct membership_place *out)
{
    return resolver_find_places(cookie, up, line, out);
}

static void free_generation(void *cookie)
{
    struct generation *g = cookie;

    for (unsigned i = 0; g && i < g->n; i++)
        upstream_release(g->list[i]);
    free(g);
}

static void publish(const struct upstream_next *next, unsigned n)
{
    struct generation *g = calloc(1, sizeof(*g)), *before = atomic_load(&generation);
    struct grace *grace;

    for (; g->n < n; g->n++)
        g->list[g->n] = upstream_hold(next[g->n].upstream);
    STRESS_CHECK(grace_create(&grace, workers, free_generation, before) == 0);
    atomic_store(&generation, g);
    grace_begin(grace);
}

static void begin_round(void);

static void end_round(void)
{
    free_conf();
    upstreams_change = NULL;
    resolver_change = NULL;
    if (stress_goes_on(n_commits + n_cancels, load))
        begin_round();
    else
        promise_succeed(&done);
}

static void cancel_round(void)
{
    if (resolver_change)
        resolver_cancel(resolver_change);
    upstreams_cancel(upstreams_change);
    n_cancels++;
    end_round();
}

static void commit_round(struct checks_change *checks_change)
{
    unsigned n;
    const struct upstream_next *next = upstreams_next(upstreams_change, &n);

    publish(next, n);
    upstreams_commit(upstreams_change);
    checks_commit(checks_change);
    resolver_commit(resolver_change);
    n_commits++;
    end_round();
}

static void on_ready(void *cookie, int error)
{
    const struct upstream_next *next;
    struct checks_change *checks_change;
    unsigned n;

    (void)cookie;
    STRESS_CHECK(error == 0 || error == -ENODATA); /* an upstream would have no server */
    loop_cancel(control, &step);
    if (error < 0) {
        cancel_round();
        return;
    }
    STRESS_CHECK(upstreams_complete(upstreams_change, find_places, resolver_change) == 0);
    next = upstreams_next(upstreams_change, &n);
    STRESS_CHECK(checks_prepare(checks, next, n, 1 + draw(8), &checks_change) == 0);
    if (draw(5) > 0) {
        commit_round(checks_change);
        return;
    }
    checks_cancel(checks_change);
    cancel_round();
}

static void begin_round(void)
{
    struct resolver_next next = {
        .listeners = &listeners, .wait_ns = draw(4) * NS_PER_MS, .ready = on_ready};

    draw_conf();
    STRESS_CHECK(upstreams_prepare(upstreams, &conf, &upstreams_change) == 0);
    next.list = upstreams_next(upstreams_change, &next.n);
    STRESS_CHECK(resolver_prepare(resolver, &next, &resolver_change) == 0);
    if (draw(8) == 0)
        loop_schedule(control, &step, draw(2) * NS_PER_MS);
}

static void run_step(struct task *t)
{
    (void)t;
    if (upstreams_change)
        cancel_round();
    else
        begin_round(); /* the first */
}

static const struct task_type step_type = {.name = "step", .run = run_step};

/* ---- picks, on the workers ---- */

static void leave(struct session *s, enum upstream_outcome outcome)
{
    if (s->up) {
        upstream_leave(s->up, s->server, outcome);
        upstream_release(s->up);
    }
    s->up = NULL;
}

static void enter(struct session *s, unsigned random)
{
    struct generation *g = atomic_load(&generation);
    struct upstream *up = g && g->n > 0 ? g->list[random % g->n] : NULL;
    struct balancer_pick_state pick;

    if (!up)
        return;
    balancer_begin(&pick, random);
    if (upstream_pick(up, &pick, &s->server) < 0)
        return;
    s->up = upstream_hold(up);
    atomic_fetch_add_explicit(&n_picks, 1, memory_order_relaxed);
}

static void run_pick(struct task *t)
{
    struct picker *p = CONTAINER_OF(t, struct picker, task);

    for (unsigned i = 0; i < 4; i++) {
        unsigned random = (unsigned)rand_r(&p->seed);
        struct session *s = &p->sessions[random % SESSIONS];

        leave(s, (enum upstream_outcome)(random >> 8) % 3);
        enter(s, random >> 4);
    }
    if (atomic_load(&over) || loop_submit(p->loop, LOOP_TASKS, t) < 0)
        for (unsigned i = 0; i < SESSIONS; i++)
            leave(&p->sessions[i], UPSTREAM_UNKNOWN);
}

static void drop_pick(struct task *t)
{
    struct picker *p = CONTAINER_OF(t, struct picker, task);

    for (unsigned i = 0; i < SESSIONS; i++)
        leave(&p->sessions[i], UPSTREAM_UNKNOWN);
}

static const struct task_type pick_type = {.name = "pick", .run = run_pick, .drop = drop_pick};

/* ---- main ---- */

/* Every other one listens, and accepts nothing. */
static void open_port(unsigned i)
{
    struct address *a = &ports[i];

    fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockets_loopback(a, 0);
    STRESS_CHECK(bind(fds[i], &a->u.sa, a->len) == 0);
    STRESS_CHECK(getsockname(fds[i], &a->u.sa, &a->len) == 0);
    STRESS_CHECK(i % 2 == 0 || listen(fds[i], 1000) == 0);
}

static void create(void)
{
    struct loop_conf one = {.name = "control",
                            .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                            .max_pending_tasks = 4096};
    struct loop_group_conf group = {.name = "work", .pool = 2, .n_loops = WORKERS, .loop = one};
    struct executor_conf exec = {
        .name = "exec", .pool = 3, .threads = 2, .max_pending_tasks = 4096};
    struct resolver_conf names = {.retry_ns = NS_PER_MS,
                                  .service_ns = NS_PER_S,
                                  .lookup = look_up,
                                  .leads_back = leads_back,
                                  .hold = hold,
                                  .release = release};
    struct checks_conf checks_conf = {0};

    STRESS_CHECK(loop_create(&control, &one) == 0);
    STRESS_CHECK(loop_group_create(&workers, &group) == 0);
    STRESS_CHECK(executor_create(&executor, &exec) == 0);
    STRESS_CHECK(
        upstreams_create(&upstreams, control, &(struct upstream_env){.workers = workers}) == 0);
    names.executor = executor;
    names.control = checks_conf.control = control;
    checks_conf.loops = workers;
    STRESS_CHECK(resolver_create(&resolver, &names) == 0);
    STRESS_CHECK(checks_create(&checks, &checks_conf) == 0);
    promise_init(&done, NULL);
    timer_init(&step, &step_type);
    for (unsigned i = 0; i < PORTS; i++)
        open_port(i);
}

static void destroy(void)
{
    checks_destroy(checks);
    resolver_destroy(resolver);
    free_generation(atomic_load(&generation));
    upstreams_destroy(upstreams);
    executor_destroy(executor);
    loop_group_destroy(workers);
    loop_destroy(control);
    promise_close(&done);
    for (unsigned i = 0; i < PORTS; i++)
        close(fds[i]);
}

/* Of refused changes: upstreams that would have no server. */
static void ignore_line(void *cookie, enum log_level level, const char *text)
{
    (void)cookie;
    (void)level;
    (void)text;
}

int main(int argc, char **argv)
{
    static const struct log_sink nowhere = {ignore_line, NULL};

    load = stress_load(argc, argv, 5000);
    log_set_sink(&nowhere);
    log_set_level(LOG_LEVEL_ERROR);
    create();
    for (unsigned i = 0; i < WORKERS; i++) {
        pickers[i] = (struct picker){
            .task = {.type = &pick_type}, .loop = loop_group_at(workers, i), .seed = i + 1};
        STRESS_CHECK(loop_submit(pickers[i].loop, LOOP_TASKS, &pickers[i].task) == 0);
    }
    STRESS_CHECK(loop_submit(control, LOOP_CONTROL, &step.task) == 0);
    STRESS_CHECK(promise_await(&done, CLOCK_NEVER) == 0);
    atomic_store(&over, true);
    loop_group_stop(workers, 0, NS_PER_S);
    STRESS_CHECK(loop_group_join_until(workers, CLOCK_NEVER) == 0);
    loop_stop(control, 0, NS_PER_S);
    STRESS_CHECK(loop_join_until(control, CLOCK_NEVER) == 0);
    executor_stop(executor, NS_PER_S);
    STRESS_CHECK(executor_join(executor, CLOCK_NEVER) == 0);
    destroy();
    STRESS_CHECK(atomic_load(&listeners.references) == 0);
    printf("names: %" PRIu64 " configurations, %" PRIu64 " used, %" PRIu64
           " given up; picks: %llu\n",
           n_commits + n_cancels, n_commits, n_cancels, atomic_load(&n_picks));
    return EXIT_SUCCESS;
}
