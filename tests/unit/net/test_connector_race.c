/*
 * net/connector: happy eyeballs: a family that leads nowhere costs a delay, and never the
 * connection.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "net/connector.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define DELAY_MS 100

/* A server that does not answer: its queue is full, so that the kernel drops handshakes. */
struct deaf {
    int fd, filler;
};

static struct loop *loop;
static struct netloop *net;
static struct connector connector;
static struct connector_conf conf;
static struct address addresses[5];
static unsigned n_addresses;
static int64_t timeout_ns, began_at_ns;
static unsigned before, idle;

static atomic_uint outcomes;
static int outcome_fd, outcome_error;

/* What the loop connected to, in this order, and the most sockets it had at a time. */
static atomic_bool watching;
static atomic_uint tries;
static struct address tried[16];
static unsigned most_sockets;

int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
    int (*next)(int, __CONST_SOCKADDR_ARG, socklen_t) = dlsym(RTLD_NEXT, "connect");

    if (atomic_load(&watching)) {
        unsigned sockets = process_descriptors() - idle, n = atomic_load(&tries);

        most_sockets = sockets > most_sockets ? sockets : most_sockets;
        ck_assert_uint_lt(n, ARRAY_LEN(tried));
        tried[n].len = len;
        memcpy(&tried[n].u, addr.__sockaddr__, len);
        atomic_store(&tries, n + 1);
    }
    return next(fd, addr, len);
}

static void on_done(struct connector *c, int fd, int error)
{
    (void)c;
    outcome_fd = fd;
    outcome_error = error;
    atomic_fetch_add(&outcomes, 1);
}

static void prepare(void *arg)
{
    (void)arg;
    connector_init(&connector, net, on_done);
}

static void begin(void *arg)
{
    (void)arg;
    connector_start(&connector, addresses, n_addresses, timeout_ns, &conf);
}

static void cancel(void *arg)
{
    (void)arg;
    connector_cancel(&connector);
}

static void setup(void)
{
    before = process_descriptors();
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    loop_runner_call(loop, prepare, NULL);
    n_addresses = 2;
    timeout_ns = 20 * NS_PER_S;
    conf.attempt_delay_ns = DELAY_MS * NS_PER_MS;
}

static void teardown(void)
{
    loop_runner_call(loop, cancel, NULL);
    loop_runner_destroy(loop);
    netloop_destroy(net);
    ck_assert_uint_eq(process_descriptors(), before);
}

/* ---- addresses ---- */

static void loopback(struct address *out, int family)
{
    sockets_loopback(out, 0);
    if (family == AF_INET)
        return;
    memset(out, 0, sizeof(*out));
    out->len = sizeof(out->u.in6);
    out->u.in6.sin6_family = AF_INET6;
    out->u.in6.sin6_addr = in6addr_loopback;
}

/* A socket on a free port of ${family}; it does not listen yet, so that connecting is refused. */
static int bound(struct address *out, int family)
{
    int fd = socket(family, SOCK_STREAM, 0);

    loopback(out, family);
    ck_assert_int_eq(bind(fd, &out->u.sa, out->len), 0);
    ck_assert_int_eq(getsockname(fd, &out->u.sa, &out->len), 0);
    return fd;
}

static int answering(struct address *out, int family)
{
    int fd = bound(out, family);

    ck_assert_int_eq(listen(fd, 5), 0);
    return fd;
}

static struct deaf deaf_server(struct address *out, int family)
{
    struct deaf deaf = {.fd = bound(out, family)};

    ck_assert_int_eq(listen(deaf.fd, 0), 0);
    deaf.filler = sockets_connect(out);
    return deaf;
}

static void deaf_close(struct deaf *deaf)
{
    close(deaf->filler);
    close(deaf->fd);
}

/* ---- the course of it ---- */

static void start(void)
{
    idle = process_descriptors();
    atomic_store(&watching, true);
    began_at_ns = clock_now_ns();
    loop_runner_call(loop, begin, NULL);
}

static void await_outcome(void)
{
    UNTIL(atomic_load(&outcomes) == 1);
    atomic_store(&watching, false);
}

/*
 * The outcome is a connection to ${listening}, which is closed, and nothing else is left of the
 * attempts.
 */
static void expect_connected(int listening)
{
    int server = sockets_accept(listening);

    loop_runner_turn(loop);
    ck_assert_int_eq(outcome_error, 0);
    ck_assert_uint_eq(process_descriptors(), idle + 2);
    ck_assert_int_eq(write(outcome_fd, "x", 1), 1);
    sockets_hear(server, "x");
    close(server);
    close(outcome_fd);
    close(listening);
    ck_assert_uint_eq(atomic_load(&outcomes), 1);
}

static void expect_after_ms(int64_t least, int64_t most)
{
    ck_assert_int_ge(since_ms(began_at_ns), least);
    ck_assert_int_lt(since_ms(began_at_ns), most);
}

static const int families[2][2] = {{AF_INET6, AF_INET}, {AF_INET, AF_INET6}};

GROUP(race, setup, teardown);

TEST_EACH(race, the_other_family_answers_after_the_delay_when_the_first_does_not, 2)
{
    struct deaf deaf = deaf_server(&addresses[0], families[_i][0]);
    int listening = answering(&addresses[1], families[_i][1]);

    start();
    await_outcome();
    expect_after_ms(DELAY_MS, 9000); /* and not the half of 20 s */
    expect_connected(listening);
    deaf_close(&deaf);
}

TEST_EACH(race, second_address_is_not_tried_when_the_first_answers_within_the_delay, 2)
{
    int listening = answering(&addresses[0], families[_i][0]);
    int other = answering(&addresses[1], families[_i][1]);

    conf.attempt_delay_ns = 2 * NS_PER_S;
    start();
    await_outcome();
    ck_assert_uint_eq(atomic_load(&tries), 1);
    expect_connected(listening);
    close(other);
}

TEST(race, a_refusal_is_not_followed_by_the_delay)
{
    int refused = bound(&addresses[0], AF_INET6), listening = answering(&addresses[1], AF_INET);

    conf.attempt_delay_ns = 5 * NS_PER_S;
    start();
    await_outcome();
    expect_after_ms(0, 4000);
    expect_connected(listening);
    close(refused);
}

TEST(race, an_unreachable_address_is_not_followed_by_the_delay)
{
    int listening = answering(&addresses[1], AF_INET6);

    sockets_loopback(&addresses[0], 7);
    addresses[0].u.in.sin_addr.s_addr = htonl(INADDR_BROADCAST);
    conf.attempt_delay_ns = 5 * NS_PER_S;
    start();
    await_outcome();
    expect_after_ms(0, 4000);
    expect_connected(listening);
}

TEST(race, the_first_may_answer_after_the_second_was_tried)
{
    struct deaf first = deaf_server(&addresses[0], AF_INET6);
    struct deaf second = deaf_server(&addresses[1], AF_INET);

    start();
    UNTIL(atomic_load(&tries) == 2);
    close(sockets_accept(
        first.fd)); /* the kernel asks again, a second after it asked first, and there is room */
    await_outcome();
    expect_connected(first.fd);
    close(first.filler);
    deaf_close(&second);
}

/* ${n} addresses with these families, and the order in which they are tried. */
static const struct {
    unsigned n;
    int family[5];
    unsigned order[5];
} orders[] = {
    {5, {AF_INET6, AF_INET6, AF_INET6, AF_INET, AF_INET}, {0, 3, 1, 4, 2}},
    {5, {AF_INET6, AF_INET, AF_INET, AF_INET, AF_INET}, {0, 1, 2, 3, 4}},
    {5, {AF_INET, AF_INET, AF_INET, AF_INET, AF_INET6}, {0, 4, 1, 2, 3}},
    {4, {AF_INET, AF_INET, AF_INET6, AF_INET6}, {0, 2, 1, 3}},
    {3, {AF_INET, AF_INET6, AF_INET6}, {0, 1, 2}},
    {3, {AF_INET, AF_INET, AF_INET}, {0, 1, 2}},
};

TEST_EACH(race, the_families_take_turns, ARRAY_LEN(orders))
{
    int refused[5];

    n_addresses = orders[_i].n;
    for (unsigned i = 0; i < n_addresses; i++)
        refused[i] = bound(&addresses[i], orders[_i].family[i]);
    start();
    await_outcome();
    ck_assert_int_eq(outcome_error, -ECONNREFUSED);
    ck_assert_uint_eq(atomic_load(&tries), n_addresses);
    for (unsigned i = 0; i < n_addresses; i++) {
        ck_assert(address_equal(&tried[i], &addresses[orders[_i].order[i]]));
        close(refused[i]);
    }
}

TEST(race, at_most_two_attempts_run_at_a_time_under_one_deadline)
{
    struct deaf six = deaf_server(&addresses[0], AF_INET6),
                four = deaf_server(&addresses[1], AF_INET);

    addresses[2] = addresses[0];
    addresses[3] = addresses[1];
    n_addresses = 4;
    timeout_ns = 800 * NS_PER_MS;
    conf.attempt_delay_ns = 10 * NS_PER_MS;
    start();
    await_outcome();
    expect_after_ms(800, 3000); /* not 800 each */
    ck_assert_int_eq(outcome_error, -ETIMEDOUT);
    ck_assert_int_eq(outcome_fd, -1);
    ck_assert_uint_eq(atomic_load(&tries), 4);
    ck_assert_uint_eq(most_sockets, 2);
    deaf_close(&six);
    deaf_close(&four);
}

TEST(race, a_third_has_its_turn_when_the_share_of_the_first_is_over)
{
    struct deaf six = deaf_server(&addresses[0], AF_INET6),
                four = deaf_server(&addresses[1], AF_INET);
    int listening = answering(&addresses[2], AF_INET6);

    n_addresses = 3;
    timeout_ns = 3 * NS_PER_S;
    conf.attempt_delay_ns = 10 * NS_PER_MS;
    start();
    await_outcome();
    expect_after_ms(1000, 3000);
    expect_connected(listening);
    deaf_close(&six);
    deaf_close(&four);
}

TEST(race, a_third_has_its_turn_at_once_when_the_second_is_refused)
{
    struct deaf six = deaf_server(&addresses[0], AF_INET6);
    int refused = bound(&addresses[1], AF_INET), listening = answering(&addresses[2], AF_INET6);

    n_addresses = 3;
    start();
    await_outcome();
    expect_after_ms(DELAY_MS, 6000); /* and not the third of 20 s */
    expect_connected(listening);
    close(refused);
    deaf_close(&six);
}

TEST(race, first_attempt_goes_on_without_a_second_descriptor)
{
    struct deaf six = deaf_server(&addresses[0], AF_INET6);
    int listening = answering(&addresses[1], AF_INET);

    timeout_ns = 3 * NS_PER_S;
    idle = process_descriptors();
    process_allow_descriptors(1);
    began_at_ns = clock_now_ns();
    loop_runner_call(loop, begin, NULL);
    UNTIL(atomic_load(&outcomes) == 1);
    process_allow_any_descriptors();
    expect_after_ms(1500, 3000); /* its share is over, and the descriptor free: half of the time */
    expect_connected(listening);
    deaf_close(&six);
}

TEST(race, the_timeout_may_be_shorter_than_the_delay)
{
    struct deaf six = deaf_server(&addresses[0], AF_INET6);
    int listening = answering(&addresses[1], AF_INET);

    timeout_ns = 100 * NS_PER_MS;
    conf.attempt_delay_ns = 3600 * NS_PER_S;
    start();
    await_outcome();
    ck_assert_int_eq(outcome_error, -ETIMEDOUT);
    close(listening);
    deaf_close(&six);
}

TEST(race, without_a_second_descriptor_the_first_may_still_answer)
{
    struct deaf six = deaf_server(&addresses[0], AF_INET6);
    int other = answering(&addresses[1], AF_INET), filled;

    conf.attempt_delay_ns = 10 * NS_PER_MS;
    idle = process_descriptors();
    process_allow_descriptors(1);
    loop_runner_call(loop, begin, NULL);
    PAUSE_MS(50);
    process_allow_any_descriptors();
    filled = sockets_accept(six.fd);
    UNTIL(atomic_load(&outcomes) == 1);
    close(filled);
    expect_connected(six.fd);
    close(six.filler);
    close(other);
}

TEST_EACH(race, addresses_are_tried_one_by_one_without_a_delay_or_a_second_family, 2)
{
    struct deaf deaf = deaf_server(&addresses[0], AF_INET);
    int listening = answering(&addresses[1], _i == 0 ? AF_INET6 : AF_INET);

    conf.attempt_delay_ns = _i == 0 ? 0 : 10 * NS_PER_MS;
    timeout_ns = 3 * NS_PER_S;
    start();
    await_outcome();
    expect_after_ms(1500, 3000);
    ck_assert_uint_eq(most_sockets, 1);
    expect_connected(listening);
    deaf_close(&deaf);
}

TEST(race, a_cancelled_connector_closes_both_sockets)
{
    struct deaf six = deaf_server(&addresses[0], AF_INET6),
                four = deaf_server(&addresses[1], AF_INET);

    start();
    UNTIL(atomic_load(&tries) == 2);
    atomic_store(&watching, false);
    UNTIL(process_descriptors() == idle + 2);
    loop_runner_call(loop, cancel, NULL);
    ck_assert_uint_eq(process_descriptors(), idle);
    PAUSE_MS(50);
    ck_assert_uint_eq(atomic_load(&outcomes), 0);
    deaf_close(&six);
    deaf_close(&four);
}
