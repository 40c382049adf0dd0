/* net/connector: each address that was tried is told with its outcome, before the connector's. */
#include <errno.h>
#include <unistd.h>

#include "net/connector.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct loop *loop;
static struct netloop *net;
static struct connector connector;
static const struct connector_conf conf = {.sock = {.options = {.nodelay = true}}};
static struct address addresses[4];
static unsigned n_addresses = 1;
static int64_t timeout_ns = 10 * NS_PER_S;
static atomic_uint outcomes;
static struct {
    unsigned address;
    int error;
} tried[8];
static unsigned n_tried;

static void on_done(struct connector *c, int fd, int error)
{
    (void)c, (void)error;
    if (fd >= 0)
        close(fd);
    atomic_fetch_add(&outcomes, 1);
}

static void on_tried(struct connector *c, const struct address *a, int error)
{
    ck_assert_ptr_eq(c, &connector);
    ck_assert_uint_eq(atomic_load(&outcomes), 0);
    tried[n_tried].address = (unsigned)(a - addresses);
    tried[n_tried++].error = error;
}

static void expect_tried(unsigned i, unsigned which, int error)
{
    ck_assert_uint_lt(i, n_tried);
    ck_assert_uint_eq(tried[i].address, which);
    ck_assert_int_eq(tried[i].error, error);
}

static void prepare(void *arg)
{
    (void)arg;
    connector_init(&connector, net, on_done);
    connector.tried = on_tried;
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
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    loop_runner_call(loop, prepare, NULL);
}

static void teardown(void)
{
    loop_runner_call(loop, cancel, NULL);
    loop_runner_destroy(loop);
    netloop_destroy(net);
}

GROUP(tried, setup, teardown);

TEST(tried, addresses_are_told_until_one_answers)
{
    int refused = sockets_bound(&addresses[0]), answering;

    sockets_path(&addresses[1], "none");
    answering = sockets_listen(&addresses[2], 5);
    addresses[3] = addresses[0];
    n_addresses = 4;
    loop_runner_call(loop, begin, NULL);
    UNTIL(atomic_load(&outcomes) == 1);
    ck_assert_uint_eq(n_tried, 3);
    expect_tried(0, 0, -ECONNREFUSED);
    expect_tried(1, 1, -ENOENT);
    expect_tried(2, 2, 0);
    close(refused);
    close(answering);
}

TEST(tried, address_without_answer_is_told_as_a_timeout)
{
    int filler, deaf = sockets_listen_deaf(&addresses[0], &filler);

    timeout_ns = 50 * NS_PER_MS;
    loop_runner_call(loop, begin, NULL);
    UNTIL(atomic_load(&outcomes) == 1);
    ck_assert_uint_eq(n_tried, 1);
    expect_tried(0, 0, -ETIMEDOUT);
    close(filler);
    close(deaf);
}

TEST(tried, address_that_is_given_up_is_told_as_canceled)
{
    int filler, deaf = sockets_listen_deaf(&addresses[0], &filler);

    loop_runner_call(loop, begin, NULL);
    loop_runner_call(loop, cancel, NULL);
    ck_assert_uint_eq(n_tried, 1);
    expect_tried(0, 0, -ECANCELED);
    close(filler);
    close(deaf);
}
