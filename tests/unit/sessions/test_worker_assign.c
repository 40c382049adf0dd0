/*
 * sessions/worker_assign: which worker gets a client when some cannot be started, or have as many
 * waiting as may wait.
 */
#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/loop.h"
#include "server/server.h"
#include "server/server_conf.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define CLIENTS 100
#define MAX     LOOP_PENDING_MIN

static struct address address;
static struct listener_conf listener = {.name = "echo",
                                        .addresses = &address,
                                        .n_addresses = 1,
                                        .service = LISTENER_ECHO,
                                        .backlog = 4 * CLIENTS,
                                        .reuseport = 1};
static struct server *server;
static int holder; /* of the address's port */
static int clients[2 * CLIENTS];

static void start(enum chooser_kind chooser, unsigned workers, unsigned max_pending_tasks)
{
    static struct server_conf conf;
    struct server_events events = {.cookie = &conf};

    holder = sockets_bound(&address);
    conf = (struct server_conf){.boss = {.threads = 1, .accept_batch = 16},
                                .worker = {.threads = {.n = workers},
                                           .chooser = chooser,
                                           .io_ratio = 50,
                                           .task_quantum_ns = 5 * NS_PER_MS,
                                           .max_pending_tasks = max_pending_tasks},
                                SMALL_EXECUTORS(1),
                                .listeners = &listener,
                                .n_listeners = 1};
    ck_assert_int_eq(server_create(&server, &conf, &events), 0);
    ck_assert_int_eq(server_start(server), 0);
}

static void end(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    server_destroy(server);
    close(holder);
}

static void exchange(int fd)
{
    sockets_say(fd, "hello");
    sockets_hear(fd, "hello");
}

static void end_clients(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sockets_end(clients[i]);
}

GROUP(deal, NULL, NULL);

TEST_EACH(deal, every_client_gets_the_one_worker_that_can_start, CHOOSER_SHUFFLED + 1)
{
    log_lines_capture(LOG_LEVEL_INFO);
    start((enum chooser_kind)_i, 4, 65536);
    clients[0] = sockets_connect(&address);
    exchange(clients[0]); /* boss and one worker run */
    fault_plan(FAULT_PTHREAD_CREATE, 0, FAULT_ALWAYS, EAGAIN);
    for (unsigned i = 1; i < CLIENTS; i++) {
        clients[i] = sockets_connect(&address);
        exchange(clients[i]);
    }
    EXPECT_LOG_LINES("cannot start its thread: Resource temporarily", 3);
    ck_assert_uint_eq(log_lines_with("no worker accepts a client"), 0);
    end_clients(CLIENTS);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
    end();
}

/* ---- a worker that is held: it writes a line, and the log does not return ---- */

static atomic_bool held, is_held;
static sem_t released;

static void hold(void *cookie, enum log_level level, const char *text)
{
    (void)cookie;
    (void)level;
    if (!atomic_load(&held) || !strstr(text, " ended: "))
        return;
    atomic_store(&held, false);
    atomic_store(&is_held, true);
    while (sem_wait(&released) < 0)
        ;
}

/* Before start(). */
static void log_to_hold(void)
{
    static const struct log_sink sink = {.write = hold};

    sem_init(&released, 0, 0);
    log_set_sink(&sink);
    log_set_level(LOG_LEVEL_DEBUG);
}

/* The worker of the client that comes first, as that client ends. */
static void hold_a_worker(void)
{
    int client = sockets_connect(&address);

    exchange(client);
    atomic_store(&held, true);
    sockets_end(client);
    UNTIL(atomic_load(&is_held));
}

TEST_EACH(deal, each_worker_queues_as_many_clients_as_allowed, CHOOSER_SHUFFLED + 1)
{
    log_to_hold();
    start((enum chooser_kind)_i, 1, MAX);
    hold_a_worker();
    for (unsigned i = 0; i < 2 * CLIENTS; i++)
        clients[i] = sockets_connect(&address);
    UNTIL(server_sessions(server) == 1 + MAX);
    PAUSE_MS(50);
    ck_assert_uint_eq(server_sessions(server), 1 + MAX); /* the others are in the kernel's queue */
    sem_post(&released);
    for (unsigned i = 0; i < 2 * CLIENTS; i++)
        exchange(clients[i]);
    end_clients(2 * CLIENTS);
    end();
}

TEST_EACH(deal, clients_beyond_the_queue_of_a_blocked_worker_get_the_others, CHOOSER_SHUFFLED + 1)
{
    log_to_hold();
    start((enum chooser_kind)_i, 3, MAX);
    hold_a_worker();
    for (unsigned i = 0; i < 2 * CLIENTS; i++) {
        clients[i] = sockets_connect(&address);
        sockets_say(clients[i], "hello");
    }
    UNTIL(server_sessions(server) == 1 + 2 * CLIENTS);
    sem_post(&released);
    for (unsigned i = 0; i < 2 * CLIENTS; i++)
        sockets_hear(clients[i], "hello");
    end_clients(2 * CLIENTS);
    end();
}
