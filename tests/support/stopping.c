#include "support/stopping.h"

#include <check.h>

#include "engine/loop_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/tasks.h"
#include "support/until.h"

struct stopping stopping;

void stopping_setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    stopping.loop = loop_runner_create();
    stopping.trace = (struct tasks_trace){.len = 0};
}

void stopping_teardown(void)
{
    loop_destroy(stopping.loop);
}

int64_t stopping_take_ms(int64_t quiet_ns, int64_t timeout_ns)
{
    int64_t began_at_ns = clock_now_ns();

    loop_stop(stopping.loop, quiet_ns, timeout_ns);
    loop_runner_join(stopping.loop);
    ck_assert_int_eq(loop_state(stopping.loop), LOOP_TERMINATED);
    return since_ms(began_at_ns);
}

void stopping_start(void)
{
    loop_runner_stats(stopping.loop);
}

unsigned stopping_submit_for(int64_t ms)
{
    int64_t began_at_ns = clock_now_ns();
    unsigned n = 0;

    while (since_ms(began_at_ns) < ms && n < ARRAY_LEN(stopping.steady)) {
        int64_t now_ns = clock_now_ns();

        tasks_counted_init(&stopping.steady[n]);
        if (loop_submit(stopping.loop, LOOP_TASKS, &stopping.steady[n].task) < 0)
            break; /* the loop has ended: we were not run for the quiet period */
        stopping.last_submitted_at_ns = now_ns;
        n++;
        PAUSE_MS(20);
    }
    return n;
}
