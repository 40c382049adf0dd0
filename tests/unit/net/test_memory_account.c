/*
 * net/memory_account: memory of bytes that wait is counted whichever way it is given back, and too
 * much is told once.
 */
#include <unistd.h>

#include "net/channel.h"
#include "net/memory_account.h"
#include "support/probe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define MUCH (8 << 20) /* more than the kernel takes */

static struct memory_account buffered;
static atomic_uint told;
static uint8_t bytes[MUCH];

static void on_over(void *cookie)
{
    ck_assert_ptr_eq(cookie, &told);
    ck_assert(loop_is_current(probe.net->loop));
    atomic_fetch_add(&told, 1);
}

static void setup(void)
{
    buffered = (struct memory_account){.max_bytes = 1 << 20, .over = on_over, .cookie = &told};
    probe_connect();
    probe.net->buffered = &buffered;
    probe_start_over(sockets_unix_small);
}

static void teardown(void)
{
    probe_disconnect();
    ck_assert_int_eq(atomic_load(&buffered.bytes), 0);
}

GROUP(buffered, setup, teardown);

TEST(buffered, buffered_bytes_are_charged_until_they_are_sent)
{
    ck_assert_int_eq(probe_write(&probe, "hello", 5), 0);
    ck_assert_int_eq(atomic_load(&buffered.bytes), 0);
    ck_assert_int_eq(probe_write(&probe, bytes, MUCH), 0);
    ck_assert_int_ge(atomic_load(&buffered.bytes), (int64_t)probe_pending(&probe));
    while (probe_pending(&probe) > 0)
        ck_assert_int_gt(read(probe.peer, bytes, sizeof(bytes)), 0);
    UNTIL(atomic_load(&buffered.bytes) == 0);
}

TEST(buffered, buffered_bytes_dropped_by_an_abort_are_uncharged)
{
    ck_assert_int_eq(probe_write(&probe, bytes, MUCH), 0);
    ck_assert_int_gt(atomic_load(&buffered.bytes), 0);
    probe_abort(&probe, 0);
    UNTIL(atomic_load(&buffered.bytes) == 0);
}

TEST(buffered, exceeding_the_limit_is_logged_once_an_episode)
{
    ck_assert(!memory_account_is_over(&buffered));
    ck_assert_int_eq(probe_write(&probe, bytes, 512 * 1024), 0);
    ck_assert_uint_eq(atomic_load(&told), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(probe_write(&probe, bytes, 2 << 20), 0);
    ck_assert_uint_eq(atomic_load(&told), 1);
    ck_assert(memory_account_is_over(&buffered));
    atomic_store(&buffered.is_over, false);
    ck_assert_int_eq(probe_write(&probe, bytes, MUCH), 0);
    ck_assert_uint_eq(atomic_load(&told), 2);
}

TEST(buffered, in_an_episode_nothing_is_fed_that_waits_and_little_is_read)
{
    atomic_store(&buffered.is_over, true);
    while (probe_pending(&probe) == 0)
        ck_assert_int_eq(probe_write(&probe, bytes, 512), 0);
    ck_assert_uint_lt(probe_pending(&probe), CHANNEL_LOW_BYTES);
    ck_assert(!probe_is(&probe, channel_writable));
    sockets_say_pattern(probe.peer, 0, 40960);
    UNTIL(probe_read(&probe) == 40960);
    ck_assert_uint_ge(probe.n_reads, 10);
}
