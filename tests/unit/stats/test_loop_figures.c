/* stats/loop_figures, as log lines. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "stats/figure_log.h"
#include "stats/loop_figures.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop *loop;
static struct tasks_block block;

static void setup(void)
{
    struct budget_conf budget = {.io_ratio = 70, .quantum_ns = 100 * NS_PER_MS};

    loop = loop_runner_create_with(budget, 65536);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

/* Naps, under one name or another. */
static void nap_run(struct task *t)
{
    (void)t;
    PAUSE_MS(20);
}

static const struct task_type slow_type = {.name = "slow", .run = nap_run};
static const struct task_type quick_type = {.name = "quick", .run = nap_run};

static void submit(struct task *t, const struct task_type *type)
{
    t->type = type;
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, t), 0);
}

#define LINES 4

static char lines[LINES + 1][LOG_LINE_BYTES];
static unsigned n_lines;

static void keep_line(void *cookie, enum log_level level, const char *text)
{
    (void)cookie;
    ck_assert_int_eq(level, LOG_LEVEL_NOTICE);
    ck_assert_uint_lt(n_lines, LINES + 1);
    snprintf(lines[n_lines++], LOG_LINE_BYTES, "%s", text);
}

static void log_it(void)
{
    static const struct log_sink sink = {.write = keep_line};

    log_set_sink(&sink);
    n_lines = 0;
    loop_figures(loop, figure_log());
    ck_assert_uint_eq(n_lines, LINES);
    for (unsigned i = 0; i < LINES; i++)
        ck_assert_msg(strncmp(lines[i], "stats test ", strlen("stats test ")) == 0, "%s", lines[i]);
}

/* Does line ${i} have the word ${text}? */
static void expect(unsigned i, const char *text)
{
    char word[128];

    snprintf(word, sizeof(word), "%s ", text);
    ck_assert_msg(strstr(lines[i], word) ||
                      (strlen(lines[i]) >= strlen(text) &&
                       strcmp(lines[i] + strlen(lines[i]) - strlen(text), text) == 0),
                  "no %s in: %s", text, lines[i]);
}

GROUP(log, setup, teardown);

TEST(log, log_of_a_new_loop_is_all_zeroes)
{
    log_it();
    expect(0, "state=not_started");
    expect(0, "connections=0");
    expect(0, "turns=0");
    expect(0, "io_ratio=70");
    expect(0, "io_ratio_achieved=100");
    expect(0, "doing=\"\"");
    expect(1, "tasks_run=0");
    expect(1, "tasks_pending=0");
    expect(1, "oldest_ms=0.0");
    expect(1, "longest=\"\"");
    expect(1, "wakeups_saved=0");
    ck_assert_str_eq(lines[2], "stats test turn count=0");
    ck_assert_str_eq(lines[3], "stats test queue_wait count=0");
}

TEST(log, log_of_a_blocked_loop_names_the_running_task)
{
    struct task tasks[3];
    struct loop_stats s;
    char text[64];

    loop_load_add(loop, 7);
    submit(&tasks[0], &slow_type);
    observe_until_idle(loop);
    tasks_block_begin(&block, loop);
    for (int i = 1; i < 3; i++)
        submit(&tasks[i], &quick_type);
    s = observe_stats(loop);
    log_it();
    tasks_block_end(&block);
    expect(0, "state=started");
    expect(0, "connections=7");
    expect(0, "doing=\"block\"");
    snprintf(text, sizeof(text), "turns=%llu", (unsigned long long)s.turns);
    expect(0, text);
    expect(1, "tasks_run=1");
    expect(1, "tasks_pending=3");
    expect(1, "longest=\"slow\"");
    snprintf(text, sizeof(text), "turn count=%llu", (unsigned long long)s.turns);
    expect(2, text);
    expect(3, "queue_wait count=2");
    observe_until_idle(loop);
}

TEST(log, log_shows_nonempty_buckets)
{
    struct loop_stats s;
    struct task task;
    uint64_t shown = 0;

    submit(&task, &quick_type);
    observe_until_idle(loop);
    log_it();
    s = observe_stats(loop);
    for (const char *at = lines[2]; (at = strstr(at, " under_")); at++) {
        long long limit_us, count;

        ck_assert_int_eq(sscanf(at, " under_%lldus=%lld", &limit_us, &count), 2);
        ck_assert_uint_eq(s.turn.bucket[histogram_bucket(limit_us * NS_PER_US - 1)],
                          (uint64_t)count);
        shown += (uint64_t)count;
    }
    ck_assert_uint_eq(shown, s.turn.count);
}
