/* server/session_shed: a share of the sessions ends, idlest first, spread over the time. */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/session_shed.h"
#include "support/crowd.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct session_shed_conf conf;
static atomic_uint answers;
static int64_t told;

static void on_answer(void *cookie, int64_t n)
{
    ck_assert_ptr_eq(cookie, &conf);
    ck_assert(loop_is_current(crowd.asker));
    told = n;
    atomic_fetch_add(&answers, 1);
}

static void begin(void *arg)
{
    (void)arg;
    ck_assert_int_eq(session_shed_begin(&crowd.workers, &conf), 0);
}

static void shed(unsigned percent, int64_t over_ns)
{
    unsigned before = atomic_load(&answers);

    conf.percent = percent;
    conf.over_ns = over_ns;
    loop_runner_call(crowd.asker, begin, NULL);
    UNTIL(atomic_load(&answers) == before + 1);
}

static void setup(void)
{
    crowd_enter();
    conf = (struct session_shed_conf){.answered = on_answer, .cookie = &conf};
}

static bool has_ended(unsigned i)
{
    struct pollfd p = {.fd = crowd.clients[i], .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

GROUP(session_shed, setup, crowd_leave);

TEST(session_shed, the_idlest_of_all_workers_end_and_the_others_stay)
{
    crowd_add(300, 0);
    crowd_add(300, 1);
    PAUSE_MS(20);
    for (unsigned i = 0; i < 600; i += 2) {
        sockets_say(crowd.clients[i], "x");
        sockets_hear(crowd.clients[i], "x");
    }
    shed(50, 0);
    ck_assert_int_eq(told, 300);
    UNTIL(atomic_load(&crowd.ended) == 300);
    for (unsigned i = 0; i < 600; i++)
        ck_assert_int_eq(has_ended(i), i % 2);
}

TEST(session_shed, a_share_is_rounded_up)
{
    crowd_add(3, 0);
    shed(1, 0);
    ck_assert_int_eq(told, 1);
    UNTIL(atomic_load(&crowd.ended) == 1);
}

TEST(session_shed, ends_are_spread_over_the_time)
{
    int64_t began_at_ns;

    crowd_add(10, 0);
    crowd_add(10, 1);
    began_at_ns = clock_now_ns();
    shed(100, 2 * NS_PER_S);
    ck_assert_int_eq(told, 20);
    UNTIL(atomic_load(&crowd.ended) == 10);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 900 * NS_PER_MS);
    UNTIL(atomic_load(&crowd.ended) == 20);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 1900 * NS_PER_MS);
}

TEST(session_shed, those_that_end_in_time_anyway_are_not_chosen_again)
{
    crowd_add(4, 0);
    shed(50, UNTIL_LIMIT_NS);
    ck_assert_int_eq(told, 2);
    shed(100, UNTIL_LIMIT_NS);
    ck_assert_int_eq(told, 2);
    shed(100, 0);
    ck_assert_int_eq(told, 4);
    UNTIL(atomic_load(&crowd.ended) == 4);
}

TEST(session_shed, new_sessions_stay)
{
    crowd_add(4, 0);
    shed(100, NS_PER_S / 2);
    crowd_add(4, 0);
    UNTIL(atomic_load(&crowd.ended) == 4);
    sockets_say(crowd.clients[7], "x");
    sockets_hear(crowd.clients[7], "x");
}

TEST(session_shed, without_sessions_there_is_an_answer)
{
    shed(100, 0);
    ck_assert_int_eq(told, 0);
}
