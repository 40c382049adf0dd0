/*
 * stress/rebuild: every 100 ms each loop gets a new epoll instance, while clients talk through an
 * echo and through proxies that copy and that splice, as fast as they can, and others come and go.
 * No byte is lost, doubled or moved to another connection, no connection ends but by its client,
 * and no descriptor is left over.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "engine/loop_group.h"
#include "limits/connection_limit.h"
#include "server/listener.h"
#include "server/worker.h"
#include "service/session.h"
#include "stress/stress.h"
#include "support/echo_server.h"
#include "support/fault.h"
#include "support/sockets.h"

#define BEAT_US        100000
#define ROUNDS_MIN     30 /* under a sanitizer, too */
#define WORKERS        2
#define TALKER_THREADS 4
#define TALKERS_EACH   16 /* connections of a thread */
#define VISITORS       2
#define VISIT_BYTES    32768 /* fits between any two sockets: sent as a whole, and then heard */
#define SLICE_BYTES    16384
#define HANG_S         20 /* longer than anything takes on a busy machine */
#define PATTERN_PERIOD 65537

enum door { DOOR_ECHO, DOOR_COPY, DOOR_SPLICE, DOORS };

static struct address addresses[DOORS], back_address;
static struct listener_conf doors[DOORS] = {
    [DOOR_ECHO] = {.name = "echo", .service = LISTENER_ECHO},
    [DOOR_COPY] = {.name = "copy", .service = LISTENER_PROXY, .session.splice = SPLICE_OFF},
    [DOOR_SPLICE] = {.name = "splice", .service = LISTENER_PROXY, .session.splice = SPLICE_ON},
};
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "back", .addresses = &back_address, .n_addresses = 1, .weight = 1};
static struct upstream_conf upstream_conf = {.name = "back",
                                             .servers = &server_conf,
                                             .n_servers = 1,
                                             .connect_timeout_ns = HANG_S * NS_PER_S};

static struct loop_group *boss, *workers;
static struct worker *worker[WORKERS];
static struct listener *listener[DOORS];
static struct upstream *upstream;
static struct connection_limit places;
static uint8_t pattern[PATTERN_PERIOD + VISIT_BYTES];
static atomic_bool clients_over, draining;
static atomic_ullong n_bytes, n_visits;
static atomic_uint n_adopted, n_ended, n_stopped;

/* What a connection says from its byte ${at} on: VISIT_BYTES of it. */
static const uint8_t *pattern_at(size_t at)
{
    return &pattern[at % PATTERN_PERIOD];
}

static void pattern_fill(void)
{
    unsigned seed = 1;

    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = i < PATTERN_PERIOD ? (uint8_t)rand_r(&seed) : pattern[i - PATTERN_PERIOD];
}

static int connect_to(enum door door)
{
    const struct timeval limit = {.tv_sec = HANG_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    STRESS_CHECK(fd >= 0);
    STRESS_CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    STRESS_CHECK(connect(fd, &addresses[door].u.sa, addresses[door].len) == 0);
    return fd;
}

/* ---- clients that stay and talk ---- */

struct talker {
    size_t from;   /* where in the pattern it begins, so that no two say the same */
    size_t window; /* bytes that may be on their way */
    size_t said, heard;
    bool ended; /* it has said all it will */
};

static struct talker talkers[TALKER_THREADS][TALKERS_EACH];
static struct pollfd talker_fds[TALKER_THREADS][TALKERS_EACH];

static void talker_say(struct talker *t, int fd)
{
    size_t room = t->window - (t->said - t->heard);
    ssize_t n = send(fd, pattern_at(t->from + t->said), room < SLICE_BYTES ? room : SLICE_BYTES,
                     MSG_DONTWAIT | MSG_NOSIGNAL);

    STRESS_CHECK(n > 0 || (n < 0 && errno == EAGAIN));
    t->said += n > 0 ? (size_t)n : 0;
}

/* False: it was the end, which may come only behind all that was said. */
static bool talker_hear(struct talker *t, int fd)
{
    uint8_t data[SLICE_BYTES];
    ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

    if (n == 0) {
        STRESS_CHECK(t->ended && t->heard == t->said);
        return false;
    }
    if (n < 0) {
        STRESS_CHECK(errno == EAGAIN);
        return true;
    }
    STRESS_CHECK(memcmp(data, pattern_at(t->from + t->heard), (size_t)n) == 0);
    t->heard += (size_t)n;
    STRESS_CHECK(t->heard <= t->said);
    return true;
}

/* One round of it; false when the connection is over. */
static bool talker_turn(struct talker *t, struct pollfd *at)
{
    if ((at->revents & POLLOUT) && !t->ended)
        talker_say(t, at->fd);
    if ((at->revents & ~POLLOUT) && !talker_hear(t, at->fd)) {
        close(at->fd);
        at->fd = -1;
        return false;
    }
    if (!t->ended && atomic_load(&clients_over)) {
        t->ended = true;
        STRESS_CHECK(shutdown(at->fd, SHUT_WR) == 0);
    }
    at->events = POLLIN;
    if (!t->ended && t->said - t->heard < t->window)
        at->events |= POLLOUT;
    return true;
}

static void *talk(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg, open = TALKERS_EACH;
    struct talker *mine = talkers[self];
    struct pollfd *fds = talker_fds[self];

    while (open > 0) {
        STRESS_CHECK(poll(fds, TALKERS_EACH, HANG_S * 1000) > 0);
        for (unsigned i = 0; i < TALKERS_EACH; i++)
            if (fds[i].fd >= 0 && fds[i].revents && !talker_turn(&mine[i], &fds[i]))
                open--;
    }
    for (unsigned i = 0; i < TALKERS_EACH; i++)
        atomic_fetch_add(&n_bytes, mine[i].heard);
    return NULL;
}

/* Each door has talkers of each window. */
static void talkers_connect(void)
{
    static const size_t windows[] = {64, 1000, 4096, 16384, 65536, 262144};

    for (unsigned i = 0; i < TALKER_THREADS * TALKERS_EACH; i++) {
        unsigned thread = i % TALKER_THREADS, place = i / TALKER_THREADS;

        talkers[thread][place] = (struct talker){.from = (size_t)i * 1009,
                                                 .window = windows[i / DOORS % ARRAY_LEN(windows)]};
        talker_fds[thread][place] =
            (struct pollfd){.fd = connect_to((enum door)(i % DOORS)), .events = POLLOUT};
    }
}

/* ---- clients that come and go ---- */

static void visit(unsigned *seed)
{
    size_t from = (size_t)rand_r(seed), len = 1 + (size_t)rand_r(seed) % VISIT_BYTES;
    int fd = connect_to((enum door)((unsigned)rand_r(seed) % DOORS));
    unsigned kind = (unsigned)rand_r(seed) % 4;
    const struct linger reset = {.l_onoff = 1};
    uint8_t data[VISIT_BYTES];

    if (kind > 0)
        STRESS_CHECK(send(fd, pattern_at(from), len, MSG_NOSIGNAL) == (ssize_t)len);
    if (kind > 1) {
        STRESS_CHECK(recv(fd, data, len, MSG_WAITALL) == (ssize_t)len);
        STRESS_CHECK(memcmp(data, pattern_at(from), len) == 0);
        atomic_fetch_add(&n_bytes, len);
    }
    if (kind > 2) {
        STRESS_CHECK(shutdown(fd, SHUT_WR) == 0);
        STRESS_CHECK(recv(fd, data, 1, 0) == 0);
    } else { /* a reset: at once, in the middle, or at the end */
        STRESS_CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);
    }
    close(fd);
    atomic_fetch_add(&n_visits, 1);
}

static void *visitor(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&clients_over)) {
        visit(&seed);
        usleep((useconds_t)rand_r(&seed) % 2000);
    }
    return NULL;
}

/* ---- what a server does around its loops ---- */

static int64_t on_admit(void *cookie, unsigned descriptors)
{
    (void)cookie;
    (void)descriptors;
    return 0;
}

static void on_accepted(void *cookie, struct session *s)
{
    (void)cookie;
    atomic_fetch_add(&n_adopted, 1);
    STRESS_CHECK(worker_hand_over(loop_group_next(workers), s) == 0);
}

static void on_ended(void *cookie, struct session *s)
{
    (void)cookie;
    (void)s;
    atomic_fetch_add(&n_ended, 1);
}

static void on_stopped(void *cookie)
{
    (void)cookie;
    atomic_fetch_add(&n_stopped, 1);
}

static void open_loops(void)
{
    struct loop_group_conf conf = {
        .name = "boss",
        .pool = 1,
        .n_loops = 1,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = 5 * NS_PER_MS},
                 .max_pending_tasks = 1024,
                 .rebuild_threshold = 512}}; /* a rebuild that was not asked for would be counted */
    struct worker_env env = {.draining = &draining, .ended = on_ended};

    STRESS_CHECK(loop_group_create(&boss, &conf) == 0);
    conf.name = "work";
    conf.pool = 2;
    conf.n_loops = WORKERS;
    STRESS_CHECK(loop_group_create(&workers, &conf) == 0);
    for (unsigned i = 0; i < WORKERS; i++)
        STRESS_CHECK(worker_create(&worker[i], loop_group_at(workers, i), &env) == 0);
}

/* A free loopback port: it is ours until a listener, whose socket may share it, has taken it. */
static int reserve(struct address *a)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    sockets_loopback(a, 0);
    STRESS_CHECK(fd >= 0 && bind(fd, &a->u.sa, a->len) == 0);
    STRESS_CHECK(getsockname(fd, &a->u.sa, &a->len) == 0);
    STRESS_CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    return fd;
}

static void open_doors(void)
{
    STRESS_CHECK(upstream_create(&upstream, &upstream_conf, workers) == 0);
    connection_limit_init(&places, &(struct quota_conf){0});
    for (unsigned i = 0; i < DOORS; i++) {
        struct listener_env env = {.boss = boss,
                                   .accept_batch = 16,
                                   .upstream = doors[i].service == LISTENER_PROXY ? upstream : NULL,
                                   .room = &places,
                                   .admit = on_admit,
                                   .accepted = on_accepted,
                                   .stopped = on_stopped};

        int holder = reserve(&addresses[i]);

        doors[i].addresses = &addresses[i];
        doors[i].n_addresses = 1;
        doors[i].backlog = 128;
        doors[i].reuseport = 1;
        STRESS_CHECK(listener_create(&listener[i], &doors[i], &env) == 0);
        STRESS_CHECK(listener_start(listener[i]) == 0);
        close(holder);
    }
}

static void end_group(struct loop_group *g)
{
    loop_group_stop(g, 0, 5 * NS_PER_S);
    loop_group_join(g);
}

static void close_all(void)
{
    for (unsigned i = 0; i < DOORS; i++)
        listener_stop(listener[i]);
    end_group(boss);
    end_group(workers);
    STRESS_CHECK(atomic_load(&n_stopped) == DOORS);
    for (unsigned i = 0; i < DOORS; i++)
        listener_destroy(listener[i]);
    for (unsigned i = 0; i < WORKERS; i++)
        worker_destroy(worker[i]);
    upstream_destroy(upstream);
    loop_group_destroy(workers);
    loop_group_destroy(boss);
}

/* ---- the rebuilding ---- */

/* Runs in two turns: as a tail task it comes behind the poll that replaces the instance. */
struct beat {
    struct task task;
    struct loop *loop;
    bool rebuilt;
    atomic_bool done;
};

static struct beat beats[1 + WORKERS];

static void beat_run(struct task *t)
{
    struct beat *b = CONTAINER_OF(t, struct beat, task);

    b->rebuilt = !b->rebuilt;
    if (b->rebuilt) {
        STRESS_CHECK(loop_rebuild(b->loop) == 0);
        STRESS_CHECK(loop_submit(b->loop, LOOP_TAIL, t) == 0);
    } else {
        atomic_store(&b->done, true);
    }
}

static void beat_drop(struct task *t)
{
    (void)t;
    STRESS_CHECK(!"dropped");
}

static const struct task_type beat_type = {.name = "rebuild", .run = beat_run, .drop = beat_drop};

static void rebuild_all(uint64_t rounds)
{
    for (unsigned i = 0; i <= WORKERS; i++) {
        beats[i].loop = i == 0 ? loop_group_at(boss, 0) : loop_group_at(workers, i - 1);
        beats[i].task.type = &beat_type;
    }
    for (uint64_t round = 0; round < rounds; round++) {
        for (unsigned i = 0; i <= WORKERS; i++) {
            atomic_store(&beats[i].done, false);
            STRESS_CHECK(loop_submit(beats[i].loop, LOOP_TAIL, &beats[i].task) == 0);
        }
        usleep(BEAT_US);
        for (unsigned i = 0; i <= WORKERS; i++)
            while (!atomic_load(&beats[i].done))
                usleep(100);
    }
}

/* Open descriptors whose link in /proc has ${what} in it. */
static unsigned count_descriptors(const char *what)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    STRESS_CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char link[256] = "";

        n += readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1) > 0 &&
             strstr(link, what) != NULL;
    }
    closedir(dir);
    return n;
}

static void check_loops(uint64_t rounds)
{
    while (atomic_load(&n_ended) < atomic_load(&n_adopted))
        usleep(1000);
    for (unsigned i = 0; i <= WORKERS; i++) {
        struct loop_stats stats;

        loop_stats(beats[i].loop, &stats);
        STRESS_CHECK(stats.rebuilds == rounds);
    }
    /* Of each loop one, and of each worker that of net/hangup. */
    STRESS_CHECK(count_descriptors("[eventpoll]") == 1 + 2 * WORKERS);
    /* A rebuild takes two: one to see whether there is room for another. */
    STRESS_CHECK(fault_calls(FAULT_EPOLL_CREATE1) == (1 + WORKERS) * (1 + 2 * rounds) + WORKERS);
}

/* ---- all of it ---- */

/* The clients' time: ${rounds} beats. */
static void run_clients(uint64_t rounds)
{
    pthread_t threads[TALKER_THREADS + VISITORS];

    talkers_connect();
    for (uintptr_t i = 0; i < ARRAY_LEN(threads); i++)
        STRESS_CHECK(
            pthread_create(&threads[i], NULL, i < TALKER_THREADS ? talk : visitor, (void *)i) == 0);
    rebuild_all(rounds);
    atomic_store(&clients_over, true);
    for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    uint64_t rounds = stress_load(argc, argv, 50);
    unsigned before = count_descriptors("");
    struct echo_server *back;

    rounds = rounds < ROUNDS_MIN ? ROUNDS_MIN : rounds;
    signal(SIGPIPE, SIG_IGN);
    log_set_level(LOG_LEVEL_WARNING);
    pattern_fill();
    echo_server_open(&back, &back_address);
    open_loops();
    open_doors();
    run_clients(rounds);
    check_loops(rounds);
    close_all();
    echo_server_close(back);
    STRESS_CHECK(atomic_load(&n_ended) == atomic_load(&n_adopted));
    STRESS_CHECK(count_descriptors("") == before);
    printf("rebuild: %" PRIu64 " times each of %d loops under %d clients and %llu visits, %llu MB "
           "intact\n",
           rounds, 1 + WORKERS, TALKER_THREADS * TALKERS_EACH, atomic_load(&n_visits),
           atomic_load(&n_bytes) / 1000000);
    return EXIT_SUCCESS;
}
