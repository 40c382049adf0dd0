/* net/channel: channels of one loop are served in the order in which their peers spoke. */
#include <string.h>

#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"

#define CHANNELS 20

static struct loop *loop;
static struct netloop *net;
static struct probe probes[CHANNELS];
static char order[1000]; /* a letter for each read */
static unsigned n_reads;
static void (*first_does)(void); /* within its read */
static unsigned before;

static void on_read(struct probe *p)
{
    order[n_reads++] = (char)('a' + (p - probes));
    if (first_does)
        first_does();
    first_does = NULL;
}

static void setup(void)
{
    before = process_descriptors();
    loop = loop_runner_create();
    net = probe_net(loop);
    for (unsigned i = 0; i < CHANNELS; i++) {
        probe_init(&probes[i], net, sockets_tcp);
        probes[i].on_read = on_read;
        probe_start(&probes[i]);
    }
    loop_runner_turn(loop); /* they are watched */
}

static void teardown(void)
{
    for (unsigned i = 0; i < CHANNELS; i++)
        probe_close(&probes[i]);
    loop_runner_stop(loop);
    netloop_destroy(net);
    loop_destroy(loop);
    ck_assert_uint_eq(process_descriptors(), before);
}

/* On the loop, so that it sees none of them before all have come. */
static void do_speak(void *letters)
{
    for (const char *c = letters; *c; c++)
        sockets_say(probes[*c - 'a'].peer, "x");
    memset(order, 0, sizeof(order));
    n_reads = 0;
}

/* Have these peers speak, one after the other, and ${n} reads happen. */
static const char *speak(char *letters, unsigned n)
{
    static char seen[sizeof(order)];

    loop_runner_call(loop, do_speak, letters);
    for (unsigned i = 0; i < n; i++) /* each that is to be read has been */
        loop_runner_turn(loop);
    loop_runner_turn(loop);
    memcpy(seen, order, sizeof(seen));
    return seen;
}

static char forwards[] = "abcdefghijklmnopqrst", mixed[] = "tcaqbnfrdmelgskhjpio";

GROUP(order, setup, teardown);

TEST(order, who_spoke_first_is_served_first)
{
    ck_assert_str_eq(speak(forwards, 1), forwards);
    ck_assert_str_eq(speak(mixed, 1), mixed);
}

static void abort_c(void)
{
    channel_abort(&probes['c' - 'a'].channel, 0);
}

TEST(order, one_that_an_earlier_one_closes_is_not_served)
{
    char rest[] = "dab";

    first_does = abort_c;
    ck_assert_str_eq(speak(mixed, 1), "taqbnfrdmelgskhjpio");
    probe_wait(&probes['c' - 'a'], PROBE_CLOSED);
    ck_assert_str_eq(speak(rest, 1), rest);
}

static void pause_c(void)
{
    channel_stop_reading(&probes['c' - 'a'].channel, CHANNEL_STOP_RECEIVER);
    channel_resume_reading(&probes['c' - 'a'].channel, CHANNEL_STOP_RECEIVER);
}

TEST(order, one_that_an_earlier_one_stops_for_a_moment_comes_in_the_next_turn)
{
    char again[] = "cab";

    first_does = pause_c;
    ck_assert_str_eq(speak(mixed, 2), "taqbnfrdmelgskhjpioc");
    ck_assert_str_eq(speak(again, 1), again);
}
