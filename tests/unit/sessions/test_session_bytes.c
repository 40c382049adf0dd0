/* sessions/session_bytes: bytes of open sessions are counted once, by each walk or the end. */
#include <unistd.h>

#include "base/clock.h"
#include "sessions/session_bytes.h"
#include "stats/counters.h"
#include "support/crowd.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static atomic_uint answers;
static int64_t limit_ns;

static void on_done(void *cookie)
{
    ck_assert_ptr_eq(cookie, &answers);
    ck_assert(loop_is_current(crowd.asker));
    atomic_fetch_add(&answers, 1);
}

static void begin(void *arg)
{
    (void)arg;
    ck_assert_int_eq(session_bytes_begin(&crowd.workers, limit_ns, on_done, &answers), 0);
    ck_assert_uint_eq(atomic_load(&answers), 0);
}

static void count(void)
{
    atomic_store(&answers, 0);
    loop_runner_call(crowd.asker, begin, NULL);
    UNTIL(atomic_load(&answers) == 1);
}

static struct counters_view counted(void)
{
    struct counters_view view;

    counters_read(crowd.counters, &view);
    return view;
}

static void expect_bytes(uint64_t n)
{
    ck_assert_uint_eq(counted().bytes_in, n);
    ck_assert_uint_eq(counted().bytes_out, n);
}

static void setup(void)
{
    crowd_enter();
    limit_ns = 60 * NS_PER_S;
}

GROUP(session_bytes, setup, crowd_leave);

TEST(session_bytes, walk_counts_bytes_of_open_sessions_since_the_last_walk)
{
    crowd_add(300, 0);
    crowd_add(2, 1);
    expect_bytes(0);
    count();
    expect_bytes(302); /* each client was echoed one */
    count();
    expect_bytes(302);
    sockets_say(crowd.clients[0], "more");
    sockets_hear(crowd.clients[0], "more");
    count();
    expect_bytes(306);
}

TEST(session_bytes, end_of_a_session_counts_its_remaining_bytes)
{
    crowd_add(2, 0);
    count();
    sockets_say(crowd.clients[1], "more");
    sockets_hear(crowd.clients[1], "more");
    close(crowd.clients[1]);
    crowd.clients[1] = -1;
    UNTIL(atomic_load(&crowd.ended) == 1);
    expect_bytes(6);
    count();
    expect_bytes(6);
}

TEST(session_bytes, hanging_worker_is_waited_for_up_to_the_timeout)
{
    struct tasks_block block;

    crowd_add(1, 0);
    tasks_block_begin(&block, loop_group_at(crowd.workers.loops, 0));
    limit_ns = NS_PER_MS;
    count();
    expect_bytes(0);
    tasks_block_end(&block);
    UNTIL(counted().bytes_in == 1);
    ck_assert_uint_eq(atomic_load(&answers), 1);
}
