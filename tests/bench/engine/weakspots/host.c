/*
 * host PORT IO_RATIO: an echo server built of reactord's own layers, a boss loop and one worker
 * loop, which does to its worker what is told on standard input:
 *
 *   queue COUNT US   hand it COUNT tasks that are busy for US microseconds each; answers "queued"
 *   spin             hand it a task that hands itself on again for ever; answers "spinning"
 *   stop MS          shut it down with no quiet period and a timeout of MS; answers "ended MS"
 *
 * It ends with its standard input.
 */
#include "base/clock.h"
#include "base/log.h"
#include "common/die.h"
#include "engine/loop_group.h"
#include "limits/connection_limit.h"
#include "listen/listener.h"
#include "listen/listeners.h"
#include "service/session.h"
#include "sessions/worker.h"

#include <arpa/inet.h>
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
    ACCEPT_BATCH = 64,
    BACKLOG = 4096,
};

enum { LAST_STOP_MS = 100 };

struct busy {
    struct task task;
    int64_t busy_ns;
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
} host;

/* ---- tasks ---- */

static void busy_run(struct task *t)
{
    int64_t end_at_ns = clock_now_ns() + CONTAINER_OF(t, struct busy, task)->busy_ns;

    while (clock_now_ns() < end_at_ns)
        ;
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

static void stop(unsigned timeout_ms)
{
    int64_t began_at_ns = clock_now_ns();

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
    struct loop_group_conf conf = {
        .name = name,
        .pool = 1,
        .n_loops = 1,
        .loop = {.budget = {.io_ratio = io_ratio, .quantum_ns = QUANTUM_MS * NS_PER_MS},
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
    open_server(argv[1], (unsigned)atoi(argv[2]));
    while (fgets(line, sizeof(line), stdin))
        obey(line);
    close_server();
    return 0;
}
