/*
 * stress/sessions: clients that come, speak, break off, half-close and vanish, on echo and proxy
 * listeners, while servers are started, drained and stopped. Every byte that comes back is the
 * right one, and in the end no session, thread or descriptor is left.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "base/log.h"
#include "server/server.h"
#include "server/server_conf.h"
#include "stress/stress.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "upstream/upstream.h"

#define CLIENTS    6
#define MAX_BYTES  150000
#define ROUNDS_MIN 4

static struct address addresses[2]; /* of the echo, and of the proxy to it */
static atomic_bool round_over;
static atomic_ullong n_clients, n_bytes;

static struct listener_conf listeners[] = {
    {.name = "echo", .addresses = &addresses[0], .n_addresses = 1, .service = LISTENER_ECHO},
    {.name = "front",
     .addresses = &addresses[1],
     .n_addresses = 1,
     .service = LISTENER_PROXY,
     .upstream = "back"},
};
static struct upstream_server_conf back = {
    .id = "a", .address_text = "echo", .addresses = &addresses[0], .n_addresses = 1, .weight = 1};
static struct upstream_conf upstreams[] = {
    {.name = "back", .servers = &back, .n_servers = 1, .connect_timeout_ns = NS_PER_S}};
static const struct server_conf conf = {.boss = {.threads = 2, .accept_batch = 16},
                                        .worker = {.threads = {.n = 3},
                                                   .io_ratio = 50,
                                                   .task_quantum_ns = 5 * NS_PER_MS,
                                                   .max_pending_tasks = 4096},
                                        SMALL_EXECUTORS(1),
                                        .listeners = listeners,
                                        .n_listeners = ARRAY_LEN(listeners),
                                        .upstreams = upstreams,
                                        .n_upstreams = ARRAY_LEN(upstreams)};

static unsigned count_entries(const char *path)
{
    DIR *dir = opendir(path);
    unsigned n = 0;

    STRESS_CHECK(dir != NULL);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A loopback port that stays free for those who bind to it with SO_REUSEADDR. */
static void reserve(struct address *a)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    sockets_loopback(a, 0);
    STRESS_CHECK(bind(fd, &a->u.sa, a->len) == 0);
    STRESS_CHECK(getsockname(fd, &a->u.sa, &a->len) == 0);
    STRESS_CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
}

static void break_off(int fd)
{
    struct linger reset = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
}

/*
 * What comes back is the beginning of the pattern; anything else is a bug. False: the server has
 * broken off.
 */
static bool hear_some(int fd, size_t *heard)
{
    uint8_t data[8192], expected[sizeof(data)];
    ssize_t n = recv(fd, data, sizeof(data), 0);

    if (n <= 0)
        return false;
    sockets_pattern(expected, *heard, (size_t)n);
    STRESS_CHECK(memcmp(data, expected, (size_t)n) == 0);
    *heard += (size_t)n;
    atomic_fetch_add(&n_bytes, (unsigned long long)n);
    return true;
}

/* Say ${len} bytes and hear them in turns, as far as the server goes along. */
static bool converse(int fd, size_t len, unsigned *seed)
{
    size_t said = 0, heard = 0;

    while (said < len) {
        uint8_t data[8192];
        size_t n = 1 + (size_t)rand_r(seed) % sizeof(data);
        ssize_t sent;

        n = n < len - said ? n : len - said;
        sockets_pattern(data, said, n);
        sent = send(fd, data, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        said += (size_t)sent;
        if (rand_r(seed) % 3 == 0 && !hear_some(fd, &heard))
            return false;
    }
    if (shutdown(fd, SHUT_WR) < 0)
        return false;
    while (heard < len)
        if (!hear_some(fd, &heard))
            return false;
    return true;
}

static void visit(unsigned *seed)
{
    const struct address *a = &addresses[rand_r(seed) % 2];
    size_t len = (size_t)rand_r(seed) % (rand_r(seed) % 4 ? 500 : MAX_BYTES);
    struct timeval limit = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    STRESS_CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (connect(fd, &a->u.sa, a->len) < 0) {
        close(fd);
        return;
    }
    atomic_fetch_add(&n_clients, 1);
    switch (rand_r(seed) % 4) {
    case 0: /* in the middle of it, with a reset */
        (void)send(fd, "x", 1, MSG_NOSIGNAL);
        break_off(fd);
        return;
    case 1: break; /* without a word */
    default: (void)converse(fd, len, seed); break;
    }
    close(fd);
}

static void *visitor(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&round_over))
        visit(&seed);
    return NULL;
}

static atomic_uint drained;

static void on_drained(void *cookie)
{
    (void)cookie;
    atomic_fetch_add(&drained, 1);
}

static void run_round(unsigned round)
{
    unsigned cut;
    struct server_events events = {.drained = on_drained};
    pthread_t visitors[CLIENTS];
    struct server *server;

    atomic_store(&round_over, false);
    atomic_store(&drained, 0);
    STRESS_CHECK(server_create(&server, &conf, &events) == 0);
    STRESS_CHECK(server_start(server) == 0);
    for (uintptr_t i = 0; i < CLIENTS; i++)
        STRESS_CHECK(pthread_create(&visitors[i], NULL, visitor,
                                    (void *)(i + 1 + (uintptr_t)round * CLIENTS)) == 0);
    usleep(200000);
    if (round % 2) {
        server_drain(server);
        usleep(round % 4 * 20000);
    }
    STRESS_CHECK(server_stop(server, &cut) == 0);
    STRESS_CHECK(server_sessions(server) == 0);
    STRESS_CHECK(atomic_load(&drained) == 1);
    atomic_store(&round_over, true);
    for (unsigned i = 0; i < CLIENTS; i++)
        pthread_join(visitors[i], NULL);
    server_destroy(server);
}

int main(int argc, char **argv)
{
    uint64_t load = stress_load(argc, argv, 20);
    unsigned rounds, before, threads;

    signal(SIGPIPE, SIG_IGN);
    log_set_level(LOG_LEVEL_ERROR);
    for (unsigned i = 0; i < ARRAY_LEN(addresses); i++)
        reserve(&addresses[i]);
    for (unsigned i = 0; i < ARRAY_LEN(listeners); i++) {
        listeners[i].backlog = 128;
        listeners[i].reuseport = 1 + i;
        listeners[i].session.splice = i ? SPLICE_ON : SPLICE_AUTO;
    }
    before = count_entries("/proc/self/fd");
    run_round(0);
    usleep(
        /*
         * a joined thread leaves /proc a moment later; a sanitizer has one of its own, that stays
         */
        100000);
    threads = count_entries("/proc/self/task");
    for (rounds = 1; rounds < ROUNDS_MIN || stress_goes_on(rounds, load); rounds++)
        run_round(rounds);
    usleep(100000);
    STRESS_CHECK(count_entries("/proc/self/fd") == before);
    STRESS_CHECK(count_entries("/proc/self/task") == threads);
    printf("sessions: %u servers, %llu clients, %llu bytes echoed, nothing left behind\n", rounds,
           atomic_load(&n_clients), atomic_load(&n_bytes));
    return EXIT_SUCCESS;
}
