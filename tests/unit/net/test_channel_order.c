/* net/channel: channels of one loop are served in the order in which their peers spoke. */
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define CHANNELS 20

static struct loop *loop;
static struct netloop *net;
static struct probe probes[CHANNELS];
static char order[1000]; /* a letter for each read */
static atomic_uint n_reads;
static void (*first_does)(void); /* within its read */
static unsigned before;

static void on_read(struct probe *p)
{
    order[n_reads] = (char)('a' + (p - probes));
    n_reads++;
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

TEST(order, channels_are_read_in_the_order_in_which_they_became_readable)
{
    ck_assert_str_eq(speak(forwards, 1), forwards);
    ck_assert_str_eq(speak(mixed, 1), mixed);
}

static void abort_c(void)
{
    channel_abort(&probes['c' - 'a'].channel, 0);
}

TEST(order, channel_closed_by_an_earlier_channel_of_the_turn_is_not_read)
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

TEST(order, channel_paused_by_an_earlier_channel_of_the_turn_is_read_in_the_next_turn)
{
    char again[] = "cab";

    first_does = pause_c;
    ck_assert_str_eq(speak(mixed, 2), "taqbnfrdmelgskhjpioc");
    ck_assert_str_eq(speak(again, 1), again);
}

/* ---- one that never ends ---- */

#define FILL_BYTES  (64 * 1024)
#define READS_EACH  4 /* full reads of one event */
#define READS_TOTAL (40 * READS_EACH)

static const uint8_t fill[FILL_BYTES];

/* As much as the socket takes, so that the next read is a full one, too. */
static void fill_up(struct probe *p)
{
    while (send(p->peer, fill, sizeof(fill), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
}

static void on_endless_read(struct probe *p)
{
    if (n_reads >= READS_TOTAL)
        return;
    order[n_reads] = (char)('a' + (p - probes));
    n_reads++;
    buffer_clear(&p->read);
    fill_up(p);
}

/* On the loop, so that it sees neither before both have come. */
static void do_fill(void *arg)
{
    (void)arg;
    n_reads = 0;
    fill_up(&probes[0]);
    fill_up(&probes[1]);
}

static unsigned longest_row(void)
{
    unsigned row = 0, longest = 0;

    for (unsigned i = 0; i < READS_TOTAL; i++) {
        row = i > 0 && order[i] == order[i - 1] ? row + 1 : 1;
        longest = row > longest ? row : longest;
    }
    return longest;
}

static bool all_are_read(struct probe *p)
{
    probe_events(p); /* the loop has left its callbacks */
    return n_reads == READS_TOTAL;
}

/* Unix sockets: what is sent can be read at once. */
TEST(order, endless_reader_leaves_other_channels_their_turn)
{
    for (unsigned i = 0; i < 2; i++) {
        probe_close(&probes[i]);
        probe_init(&probes[i], net, sockets_unix);
        probes[i].on_read = on_endless_read;
        probe_start(&probes[i]);
    }
    loop_runner_turn(loop);
    loop_runner_call(loop, do_fill, NULL);
    UNTIL(all_are_read(&probes[0]));
    ck_assert_uint_le(longest_row(), 2 * READS_EACH); /* last of a turn, first of the next */
}
