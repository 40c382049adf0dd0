/*
 * net/connector: the first address that answers, one deadline, one outcome, and never inside the
 * call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "base/arena.h"
#include "net/connector.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct loop *loop;
static struct netloop *net;
static struct connector connector;
static const struct connector_conf conf = {.sock = {.options = {.nodelay = true}},
                                           .attempt_delay_ns = 20 * NS_PER_MS};
static struct address addresses[16];
static unsigned n_addresses;
static int64_t timeout_ns;
static unsigned before;

static atomic_uint outcomes;
static int outcome_fd, outcome_error;
static bool inside_start;
static bool start_again; /* from done(), once */

static const struct connector_conf *begin_with = &conf;

static void begin(void *arg)
{
    (void)arg;
    inside_start = true;
    connector_start(&connector, addresses, n_addresses, timeout_ns, begin_with);
    inside_start = false;
}

static void begin_and_release(void *memory)
{
    begin(NULL);
    arena_release(memory);
}

static void on_done(struct connector *c, int fd, int error)
{
    ck_assert_ptr_eq(c, &connector);
    ck_assert(loop_is_current(loop));
    ck_assert(!inside_start);
    outcome_fd = fd;
    outcome_error = error;
    atomic_fetch_add(&outcomes, 1);
    if (start_again) {
        start_again = false;
        n_addresses = 1;
        addresses[0] = addresses[1];
        begin(NULL);
    }
}

static void prepare(void *arg)
{
    (void)arg;
    connector_init(&connector, net, on_done);
}

static void cancel(void *arg)
{
    (void)arg;
    connector_cancel(&connector);
    connector_cancel(&connector);
}

static void setup(void)
{
    before = process_descriptors();
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    loop_runner_call(loop, prepare, NULL);
    n_addresses = 1;
    timeout_ns = 10 * NS_PER_S;
}

static void teardown(void)
{
    loop_runner_call(loop, cancel, NULL);
    loop_runner_destroy(loop);
    netloop_destroy(net);
    ck_assert_uint_eq(process_descriptors(), before);
}

static void connect_now(void)
{
    loop_runner_call(loop, begin, NULL);
}

static void await(unsigned n)
{
    UNTIL(atomic_load(&outcomes) == n);
}

static void expect_connected(int listening)
{
    int server = sockets_accept(listening);

    loop_runner_turn(loop);
    ck_assert_int_eq(outcome_error, 0);
    ck_assert_int_eq(write(outcome_fd, "x", 1), 1);
    sockets_hear(server, "x");
    close(server);
    close(outcome_fd);
    close(listening);
}

GROUP(connector, setup, teardown);

TEST(connector, a_server_that_answers_is_connected_to)
{
    int listening = sockets_listen(&addresses[0], 5);

    connect_now();
    await(1);
    expect_connected(listening);
    PAUSE_MS(30);
    ck_assert_uint_eq(atomic_load(&outcomes), 1);
}

/* On the loop, which may not have told epoll yet that the connector has left the descriptor. */
static void close_outcome(void *arg)
{
    (void)arg;
    close(outcome_fd);
}

/* AddressSanitizer sees that it is neither freed before nor kept after. */
TEST(connector, connector_holds_the_memory_of_its_configuration)
{
    struct arena *memory;
    struct connector_conf *own;
    int fd = sockets_listen(&addresses[0], 1);

    ck_assert_int_eq(arena_create(&memory), 0);
    own = arena_alloc(memory, 1, sizeof(*own));
    *own = conf;
    own->memory = memory;
    begin_with = own;
    loop_runner_call(loop, begin_and_release, memory);
    UNTIL(atomic_load(&outcomes) == 1);
    ck_assert_int_eq(outcome_error, 0);
    begin_with = &conf;
    loop_runner_call(loop, close_outcome, NULL);
    close(fd);
}

TEST(connector, a_refusal_is_the_outcome_when_there_is_no_other_address)
{
    int bound = sockets_bound(&addresses[0]);

    connect_now();
    await(1);
    ck_assert_int_eq(outcome_error, -ECONNREFUSED);
    ck_assert_int_eq(outcome_fd, -1);
    close(bound);
}

TEST(connector, an_address_that_fails_at_once_is_told_later)
{
    sockets_path(&addresses[0], "none");
    connect_now();
    await(1);
    ck_assert_int_eq(outcome_error, -ENOENT);
    ck_assert_int_eq(outcome_fd, -1);
}

TEST(connector, a_unix_server_that_accepts_at_once_is_told_later)
{
    struct address *a = &addresses[0];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    sockets_path(a, "server");
    ck_assert_int_eq(bind(fd, &a->u.sa, a->len), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    connect_now();
    await(1);
    expect_connected(fd);
    unlink(a->u.un.sun_path);
}

TEST(connector, the_addresses_are_tried_in_order)
{
    int refused = sockets_bound(&addresses[0]), answering;

    sockets_path(&addresses[1], "none");
    answering = sockets_listen(&addresses[2], 5);
    n_addresses = 3;
    connect_now();
    await(1);
    expect_connected(answering);
    close(refused);
}

TEST(connector, the_error_of_the_last_address_is_the_outcome)
{
    int refused = sockets_bound(&addresses[0]);

    sockets_path(&addresses[1], "none");
    n_addresses = 2;
    connect_now();
    await(1);
    ck_assert_int_eq(outcome_error, -ENOENT);
    close(refused);
}

TEST(connector, unreachable_address_does_not_hide_the_error_of_the_other)
{
    int refused;

    for (int way = 0; way < 2; way++) {
        refused = sockets_bound(&addresses[way]);
        sockets_loopback(&addresses[!way], 7);
        addresses[!way].u.in.sin_addr.s_addr = htonl(INADDR_BROADCAST);
        n_addresses = 2;
        connect_now();
        await(1 + (unsigned)way);
        ck_assert_int_eq(outcome_error, -ECONNREFUSED);
        close(refused);
    }
    addresses[1] = addresses[0];
    connect_now();
    await(3);
    ck_assert_int_eq(outcome_error, -ENETUNREACH);
}

TEST(connector, a_server_that_does_not_answer_times_out)
{
    int filler, deaf = sockets_listen_deaf(&addresses[0], &filler);
    int64_t began_at_ns = clock_now_ns();

    timeout_ns = 100 * NS_PER_MS;
    connect_now();
    await(1);
    ck_assert_int_ge(since_ms(began_at_ns), 100);
    ck_assert_int_lt(since_ms(began_at_ns), 5000);
    ck_assert_int_eq(outcome_error, -ETIMEDOUT);
    ck_assert_int_eq(outcome_fd, -1);
    close(filler);
    close(deaf);
}

TEST(connector, one_deadline_holds_for_all_addresses)
{
    int filler, deaf = sockets_listen_deaf(&addresses[0], &filler);
    int64_t began_at_ns = clock_now_ns();

    for (n_addresses = 1; n_addresses < ARRAY_LEN(addresses); n_addresses++)
        addresses[n_addresses] = addresses[0];
    timeout_ns = 500 * NS_PER_MS;
    connect_now();
    await(1);
    ck_assert_int_ge(since_ms(began_at_ns), 500);
    ck_assert_int_lt(since_ms(began_at_ns), 7500); /* not 500 each */
    ck_assert_int_eq(outcome_error, -ETIMEDOUT);
    close(filler);
    close(deaf);
}

TEST(connector, an_address_that_does_not_answer_leaves_time_for_the_next)
{
    int filler, deaf = sockets_listen_deaf(&addresses[0], &filler);
    int listening = sockets_listen(&addresses[1], 5);

    n_addresses = 2;
    timeout_ns = 400 * NS_PER_MS;
    connect_now();
    await(1);
    expect_connected(listening);
    close(filler);
    close(deaf);
}

TEST(connector, a_timeout_of_never_does_not_expire)
{
    int listening = sockets_listen(&addresses[0], 5);

    timeout_ns = CLOCK_NEVER;
    connect_now();
    await(1);
    expect_connected(listening);
}

static int listen_unix_full(struct address *a, int *filler)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    sockets_path(a, "full");
    ck_assert_int_eq(bind(fd, &a->u.sa, a->len), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    *filler = sockets_connect(a);
    return fd;
}

TEST(connector, a_full_unix_backlog_is_waited_for)
{
    int filler, fd = listen_unix_full(&addresses[0], &filler), server;

    connect_now();
    PAUSE_MS(60);
    ck_assert_uint_eq(atomic_load(&outcomes), 0);
    server = sockets_accept(fd); /* now there is room */
    await(1);
    close(server);
    expect_connected(fd);
    close(filler);
    unlink(addresses[0].u.un.sun_path);
}

TEST(connector, a_unix_backlog_that_stays_full_times_out)
{
    int filler, fd = listen_unix_full(&addresses[0], &filler);

    timeout_ns = 60 * NS_PER_MS;
    connect_now();
    await(1);
    ck_assert_int_eq(outcome_error, -ETIMEDOUT);
    close(filler);
    close(fd);
    unlink(addresses[0].u.un.sun_path);
}

TEST(connector, a_cancelled_connector_says_nothing_and_closes_its_socket)
{
    int filler, deaf = sockets_listen_deaf(&addresses[0], &filler);
    unsigned idle = process_descriptors();

    timeout_ns = 100 * NS_PER_MS;
    connect_now();
    ck_assert_uint_eq(process_descriptors(), idle + 1);
    loop_runner_call(loop, cancel, NULL);
    ck_assert_uint_eq(process_descriptors(), idle);
    PAUSE_MS(200);
    ck_assert_uint_eq(atomic_load(&outcomes), 0);
    close(filler);
    close(deaf);
}

static void begin_and_cancel(void *arg)
{
    begin(arg);
    cancel(arg);
}

TEST(connector, cancelled_connection_already_in_the_servers_backlog_is_reset)
{
    int server, listening = sockets_listen(&addresses[0], 5);

    loop_runner_call(loop, begin_and_cancel, NULL);
    server = sockets_accept(listening);
    sockets_hear_reset(server);
    ck_assert_uint_eq(atomic_load(&outcomes), 0);
    close(server);
    close(listening);
}

TEST(connector, outcome_known_but_not_delivered_can_be_cancelled)
{
    sockets_path(&addresses[0], "none");
    loop_runner_call(loop, begin_and_cancel, NULL);
    PAUSE_MS(30);
    ck_assert_uint_eq(atomic_load(&outcomes), 0);
}

TEST(connector, connector_can_be_started_again_from_its_outcome_callback)
{
    int refused = sockets_bound(&addresses[0]), answering = sockets_listen(&addresses[1], 5);

    start_again = true;
    connect_now();
    await(2);
    expect_connected(answering);
    close(refused);
}

static atomic_bool bind_first;

/*
 * In the place of the kernel, which sometimes chooses the port that is connected to as the source.
 */
int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
    int (*next)(int, __CONST_SOCKADDR_ARG, socklen_t) = dlsym(RTLD_NEXT, "connect");

    if (atomic_load(&bind_first))
        ck_assert_int_eq(bind(fd, addr, len), 0);
    return next(fd, addr, len);
}

TEST(connector, a_connection_to_itself_is_a_refusal)
{
    int bound = sockets_bound(&addresses[0]);

    close(bound); /* the port is free now */
    atomic_store(&bind_first, true);
    connect_now();
    await(1);
    ck_assert_int_eq(outcome_error, -ECONNREFUSED);
    ck_assert_int_eq(outcome_fd, -1);
}

TEST(connector, connector_without_descriptors_fails_with_emfile)
{
    sockets_loopback(&addresses[0], 9);
    process_allow_descriptors(0);
    connect_now();
    await(1);
    ck_assert_int_eq(outcome_error, -EMFILE);
    process_allow_any_descriptors();
}
