/*
 * sessions/session_query: the best rows of all workers, in pages, once each; whatever ends or comes
 * meanwhile.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop_stats.h"
#include "sessions/session_query.h"
#include "sessions/session_row.h"
#include "sessions/session_set.h"
#include "support/crowd.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define SORTS 3

/* The last page: what is asked of its rows is copied. */
static struct session_query_conf conf;
static struct session_query_cursor next;
static struct session_id ids[CROWD_MAX];
static uint64_t bytes[CROWD_MAX];
static int64_t ages_ns[CROWD_MAX], idle_ns[CROWD_MAX];
static unsigned n_rows;
static uint64_t matched;
static bool is_last;
static atomic_uint answers;
static uint64_t tasks_before, tasks_run; /* by the asking loop, until the answer's task */

static uint64_t count_tasks(void)
{
    struct loop_stats stats;

    loop_stats(crowd.asker, &stats);
    return stats.tasks_run;
}

static void on_answer(void *cookie, struct session_query_page *page)
{
    ck_assert_ptr_eq(cookie, &conf);
    ck_assert(loop_is_current(crowd.asker));
    ck_assert_ptr_nonnull(page);
    tasks_run = count_tasks() - tasks_before;
    n_rows = page->n;
    matched = page->matched;
    is_last = page->is_last;
    next = page->next;
    for (unsigned i = 0; i < n_rows; i++) {
        ids[i] = page->rows[i]->id;
        ages_ns[i] = page->rows[i]->age_ns;
        idle_ns[i] = page->rows[i]->idle_ns;
        bytes[i] = page->rows[i]->bytes_in + page->rows[i]->bytes_out;
        ck_assert_str_eq(page->rows[i]->listener, "front");
        ck_assert_str_eq(page->rows[i]->upstream, "back");
        ck_assert_str_eq(page->rows[i]->state, "open");
    }
    session_query_page_free(page);
    atomic_fetch_add(&answers, 1);
}

static void begin(void *arg)
{
    (void)arg;
    tasks_before = count_tasks();
    ck_assert_int_eq(session_query_begin(&crowd.workers, &conf), 0);
}

static void ask(void)
{
    unsigned before = atomic_load(&answers);

    loop_runner_call(crowd.asker, begin, NULL);
    UNTIL(atomic_load(&answers) == before + 1);
}

static void setup(void)
{
    crowd_enter();
    conf = (struct session_query_conf){.limit = 10, .answered = on_answer, .cookie = &conf};
}

static void teardown(void)
{
    crowd_leave();
}

/* Ask for the next page, from a cursor that was text. */
static void ask_next(void)
{
    char text[SESSION_QUERY_CURSOR_BYTES];

    session_query_cursor_format(text, &next);
    ck_assert_int_eq(session_query_cursor_parse(&conf.after, text), 0);
    ask();
}

GROUP(session_query, setup, teardown);

TEST(session_query, without_sessions_has_no_rows_and_starts_no_thread)
{
    ask();
    ck_assert_uint_eq(n_rows, 0);
    ck_assert_uint_eq(matched, 0);
    ck_assert(is_last);
    ck_assert_int_eq(loop_state(loop_group_at(crowd.workers.loops, 0)), LOOP_NOT_STARTED);
}

TEST(session_query, rows_of_all_workers_are_sorted_by_age)
{
    crowd_add(5, 0);
    crowd_add(5, 1);
    crowd_add(5, 0);
    ask();
    ck_assert_uint_eq(n_rows, 10);
    ck_assert_uint_eq(matched, 15);
    ck_assert(!is_last);
    for (unsigned i = 1; i < n_rows; i++)
        ck_assert_int_ge(ages_ns[i - 1] + NS_PER_S, ages_ns[i]);
    ask_next();
    ck_assert_uint_eq(n_rows, 5);
    ck_assert_uint_eq(matched, 15);
    ck_assert(is_last);
}

TEST(session_query, sort_by_idle_time_has_the_longest_first)
{
    conf.sort = SESSION_QUERY_IDLE;
    conf.limit = 4;
    crowd_add(6, 0);
    PAUSE_MS(20);
    for (unsigned i = 0; i < 6; i += 2) {
        sockets_say(crowd.clients[i], "x");
        sockets_hear(crowd.clients[i], "x");
    }
    ask();
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_ge(idle_ns[i], 20 * NS_PER_MS);
    for (unsigned i = 1; i < 4; i++)
        ck_assert_int_ge(idle_ns[i - 1], idle_ns[i]);
}

TEST(session_query, sort_by_bytes_has_the_largest_first)
{
    conf.sort = SESSION_QUERY_BYTES;
    conf.limit = 3;
    crowd_add(4, 0);
    crowd_add(4, 1);
    for (unsigned i = 0; i < 8; i++)
        for (unsigned n = 0; n < (5 * i) % 8; n++) {
            sockets_say(crowd.clients[i], "x");
            sockets_hear(crowd.clients[i], "x");
        }
    ask();
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(bytes[i], 2 * (8 - i));
    ask_next();
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(bytes[i], 2 * (5 - i));
    ask_next();
    ck_assert_uint_eq(n_rows, 2);
    ck_assert_uint_eq(bytes[1], 2);
    ck_assert(is_last);
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct session_id));
}

/* Each page is asked for while sessions end, and others come. */
TEST_EACH(session_query, sessions_that_stay_open_appear_once_on_all_pages, SORTS)
{
    struct session_id all[CROWD_MAX];
    unsigned n = 0, pages = 0;

    conf.sort = (enum session_query_sort)_i;
    conf.limit = 40;
    crowd_add(300, 0);
    crowd_add(100, 1);
    ask();
    for (;;) {
        memcpy(&all[n], ids, n_rows * sizeof(ids[0]));
        n += n_rows;
        if (is_last)
            break;
        crowd_add(3, pages % 2);
        shutdown(crowd.clients[pages * 7], SHUT_RDWR);
        pages++;
        UNTIL(atomic_load(&crowd.ended) == pages);
        ask_next();
    }
    ck_assert_uint_ge(pages, 9);
    ck_assert_uint_ge(n, 400 - pages);
    qsort(all, n, sizeof(all[0]), compare);
    for (unsigned i = 1; i < n; i++)
        ck_assert_int_ne(compare(&all[i - 1], &all[i]), 0);
}

TEST(session_query, a_long_page_is_merged_in_steps)
{
    conf.limit = CROWD_MAX;
    crowd_add(CROWD_MAX / 2, 0);
    crowd_add(CROWD_MAX / 2, 1);
    ask();
    ck_assert_uint_eq(n_rows, CROWD_MAX);
    for (unsigned i = 1; i < n_rows; i++)
        ck_assert_int_ge(ages_ns[i - 1], ages_ns[i]);
    /* begin(), and all steps but the last */
    ck_assert_uint_ge(tasks_run, 1 + CROWD_MAX / SESSION_SET_STEP);
}

TEST(session_query, sessions_begun_after_the_first_page_are_on_no_later_page)
{
    conf.limit = 2;
    crowd_add(3, 0);
    ask();
    crowd_add(5, 0);
    ask_next();
    ck_assert_uint_eq(n_rows, 1);
    ck_assert(is_last);
}

TEST(session_query, the_filter_applies_on_all_pages)
{
    conf.limit = 2;
    ck_assert_ptr_null(session_filter_set(&conf.filter, "server", "back/b"));
    crowd_add(6, 0);
    crowd_add(4, 1);
    ask();
    ck_assert_uint_eq(matched, 5);
    ask_next();
    ck_assert_uint_eq(matched, 5);
    ask_next();
    ck_assert_uint_eq(n_rows, 1);
    ck_assert(is_last);
}

TEST(session_query, page_with_the_last_row_is_marked_as_the_last)
{
    conf.limit = 5;
    crowd_add(5, 0);
    ask();
    ck_assert_uint_eq(n_rows, 5);
    ck_assert(is_last);
}

TEST(session_query, sessions_that_end_between_steps_are_left_out)
{
    struct tasks_block block;
    unsigned before;

    conf.limit = CROWD_MAX;
    crowd_add(400, 0);
    before = atomic_load(&answers);
    tasks_block_begin(&block, loop_group_at(crowd.workers.loops, 0));
    loop_runner_call(crowd.asker, begin, NULL);
    for (unsigned i = 200; i < 400; i++)
        shutdown(crowd.clients[i], SHUT_RDWR);
    tasks_block_end(&block);
    UNTIL(atomic_load(&answers) == before + 1);
    ck_assert_uint_ge(n_rows, 200);
    ck_assert_uint_eq(n_rows, matched);
}

TEST(session_query, a_worker_that_ends_meanwhile_does_not_hold_up_the_answer)
{
    struct tasks_block block;
    unsigned before;

    crowd_add(3, 0);
    crowd_add(3, 1);
    before = atomic_load(&answers);
    tasks_block_begin(&block, loop_group_at(crowd.workers.loops, 0));
    loop_runner_call(crowd.asker, begin, NULL);
    loop_stop(loop_group_at(crowd.workers.loops, 0), 0, 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&answers) == before + 1);
    ck_assert_uint_ge(n_rows, 3);
    crowd_stop_worker(0);
    ask();
    ck_assert_uint_eq(n_rows, 3);
}

/* The sanitizers find a leak. */
TEST(session_query, ended_loop_of_the_caller_gets_no_answer)
{
    struct tasks_block block;

    crowd_add(3, 0);
    tasks_block_begin(&block, loop_group_at(crowd.workers.loops, 0));
    loop_runner_call(crowd.asker, begin, NULL);
    loop_stop(crowd.asker, 0, 0);
    loop_runner_join(crowd.asker);
    tasks_block_end(&block);
    crowd_stop_worker(0);
    ck_assert_uint_eq(atomic_load(&answers), 0);
}

TEST(session_query, invalid_cursor_is_refused)
{
    static const char *const wrong[] = {
        "",
        "age",
        "age-0000000000000001-0000000000000001-0000000000000000000000000000000",
        "age-0000000000000000-0000000000000001-00000000000000000000000000000001",
        "size-0000000000000001-0000000000000001-00000000000000000000000000000001",
        "age-1-1-00000000000000000000000000000001",
        "age-0000000000000001-0000000000000001-00000000000000000000000000000001x",
        "age--000000000000001-0000000000000001-00000000000000000000000000000001",
        "age-0x00000000000001-0000000000000001-00000000000000000000000000000001",
    };
    struct session_query_cursor cursor;

    for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
        ck_assert_msg(session_query_cursor_parse(&cursor, wrong[i]) < 0, "%s", wrong[i]);
    ck_assert_int_eq(
        session_query_cursor_parse(
            &cursor, "idle-0000000000000001-ffffffffffffffff-00000000000000000000000000000001"),
        0);
    ck_assert_int_eq(cursor.rank, -1);
}

TEST(session_query, sorts_have_names)
{
    enum session_query_sort sort;

    ck_assert_int_eq(session_query_sort_of(&sort, "bytes"), 0);
    ck_assert_int_eq(sort, SESSION_QUERY_BYTES);
    ck_assert_int_lt(session_query_sort_of(&sort, "Age"), 0);
}
