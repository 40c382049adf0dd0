/*
 * host PORT IO_RATIO: an echo server built of reactord's own layers, a boss loop and one worker
 * loop, which does to its worker what is told on standard input. IO_RATIO may be auto.
 *
 *   queue COUNT US   hand it COUNT tasks that are busy for US microseconds each; answers "queued"
 *   spin             hand it a task that hands itself on again for ever; answers "spinning"
 *   feed RATE US     hand it RATE such tasks a second from now on; answers "feeding"
 *   waits            answers "P99 RATE RATIO": how long its tasks waited since the last such
 *                    command, in us; how many ran a second; its share for I/O, in percent
 *   stop MS          shut it down with no quiet period and a timeout of MS; answers "ended MS"
 *
 * It ends with its standard input.
 */
#include "base/clock.h"
#include "base/log.h"
#include "common/die.h"
#include "engine/loop_group.h"
#include "engine/loop_stats.h"
#include "limits/connection_limit.h"
#include "listen/listener.h"
#include "listen/listeners.h"
#include "service/session.h"
#include "sessions/worker.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As the configuration has them when nothing is set. */
enum {
    QUANTUM_MS = 10,
    MAX_PENDING_TASKS = 1000000,
    REBUILD_THRESHOLD = 512,
    STALL_MS = 500,
    QUEUE_WAIT_GOAL_MS = 1,
    ACCEPT_BATCH = 64,
    BACKLOG = 4096,
};

enum { LAST_STOP_MS = 100 };

/* A feeder waits while so many of its tasks are queued. */
enum { FEED_MAX = 1 << 14 };

#define FEED_TICK_NS NS_PER_MS

struct busy {
    struct task task;
    int64_t busy_ns;
    atomic_bool is_queued; /* of a feeder: the worker clears it */
};

struct feeder {
    pthread_t thread;
    atomic_bool ends;
    unsigned rate; /* tasks a second; 0: none was asked for */
    struct busy tasks[FEED_MAX];
};

static struct {
    struct loop_group *boss;
    struct loop_group *workers;
    struct loop *loop; /* the only one of `workers` */
    struct worker *worker;
    struct listeners *listeners;
    struct connection_limit connection_limit;
    atomic_bool draining;
    struct address address[2]; /* address_parse() wants space for two */
    struct listener_conf listener_conf;
    struct busy *backlog;
    struct task spinning;
    struct feeder feeder;
    struct histogram_view waits; /* until the last `waits` */
    uint64_t tasks_run;
    int64_t asked_at_ns;
} host;

/* ---- tasks ---- */

static void busy_run(struct task *t)
{
    struct busy *b = CONTAINER_OF(t, struct busy, task);
    int64_t end_at_ns = clock_now_ns() + b->busy_ns;

    while (clock_now_ns() < end_at_ns)
        ;
    atomic_store(&b->is_queued, false);
}

static void spin_run(struct task *t)
{
    if (loop_submit(host.loop, LOOP_TASKS, t) < 0)
        return; /* the loop ends; there is nothing to release */
}

static const struct task_type busy_type = {.name = "busy", .run = busy_run};
static const struct task_type spin_type = {.name = "spin", .run = spin_run};

static void submit(struct task *t)
{
    if (loop_submit(host.loop, LOOP_TASKS, t) < 0)
        die("the worker refuses a task");
}

static void queue_tasks(unsigned count, unsigned busy_us)
{
    free(host.backlog);
    host.backlog = calloc(count, sizeof(host.backlog[0]));
    if (!host.backlog)
        die_errno("calloc");
    for (unsigned i = 0; i < count; i++) {
        host.backlog[i] = (struct busy){.task.type = &busy_type, .busy_ns = busy_us * NS_PER_US};
        submit(&host.backlog[i].task);
    }
    puts("queued");
}

static void spin(void)
{
    host.spinning.type = &spin_type;
    submit(&host.spinning);
    puts("spinning");
}

/* What is not taken in a tick because all tasks are queued is not made up for. */
static void *feed_run(void *cookie)
{
    struct feeder *f = cookie;
    int64_t at_ns = clock_now_ns();
    double due = 0;

    for (unsigned next = 0; !atomic_load(&f->ends);) {
        struct timespec until;

        at_ns += FEED_TICK_NS;
        until = (struct timespec){.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        for (due += (double)f->rate * FEED_TICK_NS / NS_PER_S; due >= 1; due--) {
            struct busy *b = &f->tasks[next % FEED_MAX];

            if (atomic_exchange(&b->is_queued, true))
                continue;
            submit(&b->task);
            next++;
        }
    }
    return NULL;
}

static void feed(unsigned rate, unsigned busy_us)
{
    struct feeder *f = &host.feeder;

    if (f->rate > 0)
        die("there is a feeder");
    for (unsigned i = 0; i < FEED_MAX; i++)
        f->tasks[i] = (struct busy){.task.type = &busy_type, .busy_ns = busy_us * NS_PER_US};
    f->rate = rate;
    if (pthread_create(&f->thread, NULL, feed_run, f) != 0)
        die("no thread");
    puts("feeding");
}

static void end_feeder(void)
{
    if (host.feeder.rate == 0)
        return;
    atomic_store(&host.feeder.ends, true);
    pthread_join(host.feeder.thread, NULL);
    host.feeder.rate = 0;
}

static void tell_waits(void)
{
    int64_t now_ns = clock_now_ns();
    struct histogram_view waits;
    struct loop_stats s;

    loop_stats(host.loop, &s);
    waits = histogram_since(&s.queue_wait, &host.waits);
    printf("%.1f %.0f %u\n", (double)histogram_between_ns(&waits, 990) / NS_PER_US,
           (double)(s.tasks_run - host.tasks_run) * NS_PER_S / (double)(now_ns - host.asked_at_ns),
           s.io_ratio);
    host.waits = s.queue_wait;
    host.tasks_run = s.tasks_run;
    host.asked_at_ns = now_ns;
}

static void stop(unsigned timeout_ms)
{
    int64_t began_at_ns;

    end_feeder();
    began_at_ns = clock_now_ns();
    loop_stop(host.loop, 0, timeout_ms * NS_PER_MS);
    if (loop_join_until(host.loop, CLOCK_NEVER) < 0)
        die("the loop did not end");
    printf("ended %.1f\n", (double)(clock_now_ns() - began_at_ns) / (double)NS_PER_MS);
}

/* ---- the server ---- */

static int64_t on_admit(void *cookie, unsigned descriptors)
{
    (void)cookie;
    (void)descriptors;
    return 0;
}

static void on_accepted(void *cookie, struct session *s)
{
    (void)cookie;
    if (worker_hand_over(host.loop, s) < 0)
        session_refuse(s);
}

static void on_socket(void *cookie)
{
    (void)cookie;
}

static void on_ended(void *cookie, const struct service *of)
{
    (void)cookie;
    listener_left(of);
}

static struct loop_group *open_group(const char *name, unsigned io_ratio)
{
    struct loop_group_conf conf = {.name = name,
                                   .pool = 1,
                                   .n_loops = 1,
                                   .loop = {.budget = {.io_ratio = io_ratio,
                                                       .quantum_ns = QUANTUM_MS * NS_PER_MS,
                                                       .goal_ns = QUEUE_WAIT_GOAL_MS * NS_PER_MS},
                                            .max_pending_tasks = MAX_PENDING_TASKS,
                                            .rebuild_threshold = REBUILD_THRESHOLD,
                                            .stall_threshold_ns = STALL_MS * NS_PER_MS}};
    struct loop_group *group;

    if (loop_group_create(&group, &conf) < 0)
        die("the %s loop cannot be created", name);
    return group;
}

static void open_server(const char *port, unsigned io_ratio)
{
    struct worker_env worker_env = {.draining = &host.draining, .ended = on_ended};
    struct listeners_env listeners_env = {.connection_limit = &host.connection_limit,
                                          .admit = on_admit,
                                          .accepted = on_accepted,
                                          .opened = on_socket,
                                          .stopped = on_socket};
    const struct listeners_sources sources = {
        .list = &host.listener_conf, .n = 1, .accept_batch = ACCEPT_BATCH};
    struct listeners_change *change;
    char text[ADDRESS_TEXT_BYTES];

    snprintf(text, sizeof(text), "127.0.0.1:%s", port);
    if (address_parse(host.address, 2, text) != 1)
        die("not a port: %s", port);
    host.boss = open_group("boss", io_ratio);
    host.workers = open_group("work", io_ratio);
    host.loop = loop_group_at(host.workers, 0);
    host.listener_conf = (struct listener_conf){.name = "bench",
                                                .addresses = host.address,
                                                .n_addresses = 1,
                                                .service = LISTENER_ECHO,
                                                .backlog = BACKLOG,
                                                .reuseport = 1};
    listeners_env.boss = host.boss;
    connection_limit_init(&host.connection_limit, &(struct quota_conf){0});
    if (worker_create(&host.worker, host.loop, &worker_env) < 0 ||
        listeners_create(&host.listeners, &listeners_env) < 0 ||
        listeners_prepare(host.listeners, &sources, &change) < 0)
        die("the server cannot be created");
    listeners_commit(change);
    if (listeners_start(host.listeners) < 0)
        die("the server cannot be started");
}

static void end_group(struct loop_group *group, int64_t timeout_ns)
{
    loop_group_stop(group, 0, timeout_ns);
    if (loop_group_join_until(group, CLOCK_NEVER) < 0)
        die("a group did not end");
}

/* In this order no session reaches a worker that is gone. */
static void close_server(void)
{
    end_feeder();
    end_group(host.boss, NS_PER_S);
    end_group(host.workers, LAST_STOP_MS * NS_PER_MS);
    listeners_destroy(host.listeners);
    worker_destroy(host.worker);
    loop_group_destroy(host.workers);
    loop_group_destroy(host.boss);
    free(host.backlog);
}

static void obey(const char *line)
{
    unsigned a, b;

    if (sscanf(line, "queue %u %u", &a, &b) == 2)
        queue_tasks(a, b);
    else if (strcmp(line, "spin\n") == 0)
        spin();
    else if (sscanf(line, "feed %u %u", &a, &b) == 2)
        feed(a, b);
    else if (strcmp(line, "waits\n") == 0)
        tell_waits();
    else if (sscanf(line, "stop %u", &a) == 1)
        stop(a);
    else
        die("not understood: %s", line);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[64];

    if (argc != 3)
        die("usage: host PORT IO_RATIO");
    signal(SIGPIPE, SIG_IGN);
    log_set_level(LOG_LEVEL_ERROR); /* that a stop times out is what is asked for */
    open_server(argv[1],
                strcmp(argv[2], "auto") == 0 ? BUDGET_RATIO_AUTO : (unsigned)atoi(argv[2]));
    while (fgets(line, sizeof(line), stdin))
        obey(line);
    close_server();
    return 0;
}
