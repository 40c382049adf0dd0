/* stats/counters_set: counters that another process continues, and none that falls meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "stats/counters_set.h"
#include "stats/figure.h"
#include "support/suite.h"

/* Of the old process and of the new one. */
static struct object {
    struct counters counters;
    struct counters_connects connects;
    _Atomic uint64_t waits;
    struct counters_set set;
} before, after;

static char *text;
static size_t text_len;

static void object_init(struct object *o)
{
    *o = (struct object){.waits = 0};
    counters_set_add_sessions(&o->set, &o->counters);
    counters_set_add_connects(&o->set, &o->connects);
    counters_set_add(&o->set, "limit_waits", &o->waits);
}

static void setup(void)
{
    object_init(&before);
    object_init(&after);
}

static void teardown(void)
{
    free(text);
    text = NULL;
}

/* What ${o} says of itself, until the next call. */
static const char *write_text(const struct object *o)
{
    FILE *f;

    free(text);
    f = open_memstream(&text, &text_len);
    ck_assert_ptr_nonnull(f);
    counters_set_write(&o->set, f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

GROUP(counters_set, setup, teardown);

TEST(counters_set, only_nonzero_counters_are_written)
{
    ck_assert_str_eq(write_text(&before), "");
    counters_began(&before.counters);
    counters_ended(&before.counters, SESSION_CLIENT_FIN, 3, 4);
    atomic_store(&before.waits, 5);
    ck_assert_str_eq(write_text(&before),
                     " limit_waits=5 client_fin=1 bytes_out=4 bytes_in=3 sessions_total=1");
}

struct live {
    _Atomic uint64_t few, many;
    atomic_uint now;
};

static const struct figure live_rows[] = {
    FIGURE_LIVE(struct live, COUNTER, NUMBER, many, "many", ""),
    FIGURE_LIVE(struct live, GAUGE, NUMBER, now, "now", ""),
    FIGURE_LIVE(struct live, COUNTER, NUMBER, few, "few", ""),
};

static const struct figure_table live_table = {.prefix = "x_", FIGURE_LIVE_TABLE(0, live_rows)};

TEST(counters_set, a_table_adds_its_counters_with_their_prefix)
{
    struct live live = {.few = 1, .many = 2, .now = 3}, next = {.few = 10};
    struct counters_set from = {.n = 0}, to = {.n = 0};

    counters_set_add_table(&from, &live_table, &live);
    counters_set_add_table(&to, &live_table, &next);
    ck_assert_uint_eq(from.n, 2);
    ck_assert_str_eq(from.items[0].key, "x_many");
    ck_assert_str_eq(from.items[1].key, "x_few");
    counters_set_merge(&to, &from);
    ck_assert_uint_eq(next.few, 11);
    ck_assert_uint_eq(next.many, 2);
    ck_assert_uint_eq(next.now, 0);
}

TEST(counters_set, all_counters_continue_from_the_text)
{
    struct counters_view v;

    for (int i = 0; i < 3; i++)
        counters_began(&before.counters);
    counters_ended(&before.counters, SESSION_IDLE, 10, 20);
    counters_connected(&before.connects, 3 * NS_PER_MS);
    counters_connect_failed(&before.connects);
    counters_first_byte(&before.connects, 5 * NS_PER_MS);
    atomic_store(&before.waits, UINT64_MAX - 1);
    counters_began(&after.counters);
    counters_set_continue(&after.set, write_text(&before), "");
    counters_read(&after.counters, &v);
    ck_assert_uint_eq(v.began, 4);
    ck_assert_uint_eq(v.open, 3);
    ck_assert_uint_eq(v.bytes_in, 10);
    ck_assert_uint_eq(v.bytes_out, 20);
    ck_assert_uint_eq(v.ended[SESSION_IDLE], 1);
    ck_assert_uint_eq(atomic_load(&after.connects.failed), 1);
    ck_assert_uint_eq(atomic_load(&after.connects.time.ns), 3 * NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&after.connects.time.bucket[histogram_bucket(3 * NS_PER_MS)]), 1);
    ck_assert_uint_eq(atomic_load(&after.connects.first_byte.ns), 5 * NS_PER_MS);
    ck_assert_uint_eq(
        atomic_load(&after.connects.first_byte.bucket[histogram_bucket(5 * NS_PER_MS)]), 1);
    ck_assert_uint_eq(atomic_load(&after.waits), UINT64_MAX - 1);
}

TEST(counters_set, later_text_adds_the_difference)
{
    struct counters_view v;
    char first[256];

    counters_began(&before.counters);
    counters_began(&before.counters);
    strcpy(first, write_text(&before));
    counters_set_continue(&after.set, first, "");
    counters_ended(&before.counters, SESSION_CLIENT_FIN, 7, 8);
    counters_set_continue(&after.set, write_text(&before), first);
    counters_read(&after.counters, &v);
    ck_assert_uint_eq(v.began, 2);
    ck_assert_uint_eq(v.open, 1);
    ck_assert_uint_eq(v.bytes_in, 7);
}

static const char *const strange[] = {
    "",
    " ",
    "   ",
    " unknown=4",
    " sessions_total",
    " sessions_total=",
    " sessions_total=x",
    " sessions_total=-1",
    " sessions_total=18446744073709551616",
    " sessions_total=111111111111111111111111111111",
    " xsessions_total=4",
    " sessions_total_x=4",
    "=",
};

TEST_EACH(counters_set, unknown_counters_are_ignored, ARRAY_LEN(strange))
{
    struct counters_view v;

    counters_set_continue(&after.set, strange[_i], "");
    counters_read(&after.counters, &v);
    ck_assert_uint_eq(v.began, 0);
}

TEST(counters_set, text_with_lower_counts_subtracts_nothing)
{
    struct counters_view v;

    counters_set_continue(&after.set, " sessions_total=4", "");
    counters_set_continue(&after.set, " sessions_total=2", " sessions_total=4");
    counters_read(&after.counters, &v);
    ck_assert_uint_eq(v.began, 4);
}

TEST(counters_set, sessions_of_a_killed_process_have_ended)
{
    static const char last[] = " client_fin=1 idle=2 error=3 sessions_total=10";
    struct counters_view v;
    char *closed;

    counters_set_continue(&after.set, last, "");
    ck_assert_int_eq(counters_set_close_text(&closed, last, false), 0);
    counters_set_continue(&after.set, closed, last);
    counters_read(&after.counters, &v);
    ck_assert_uint_eq(v.began, 10);
    ck_assert_uint_eq(v.open, 0);
    ck_assert_uint_eq(v.ended[SESSION_ERROR], 7);
    free(closed);
}

/* ${o} gets a report of another process, behind ${last}, a buffer for the next time. */
static void report_to(struct object *o, const char *now, char *last, size_t size)
{
    struct counters_report report = {.text = now, .before = last};

    counters_set_report(&o->set, &o->counters, &report);
    snprintf(last, size, "%s", now);
}

/* The process before the killed one drains on: its sessions end when they do. */
TEST(counters_set, sessions_of_an_older_process_do_not_end_with_the_killed_one)
{
    static const char oldest[] = " sessions_total=5";
    char last[512] = "", of_killed[512] = "";
    struct counters_view v;
    char *closed;

    report_to(&before, oldest, last, sizeof(last));
    counters_taken(&before.counters); /* one of the five */
    for (int i = 0; i < 2; i++)
        counters_began(&before.counters);
    report_to(&after, write_text(&before), of_killed, sizeof(of_killed));
    ck_assert_int_eq(counters_set_close_text(&closed, of_killed, false), 0);
    report_to(&after, closed, of_killed, sizeof(of_killed));
    free(closed);
    counters_read(&after.counters, &v);
    ck_assert_uint_eq(v.began, 7);
    ck_assert_uint_eq(v.ended[SESSION_ERROR], 3);
    report_to(&after, " client_fin=4 handed_over=1 sessions_total=5", last, sizeof(last));
    counters_read(&after.counters, &v);
    ck_assert_uint_eq(v.open, 0);
}

TEST(counters_set, more_ends_than_sessions_leave_no_open_sessions)
{
    char *closed;

    ck_assert_int_eq(counters_set_close_text(&closed, " client_fin=11 sessions_total=10", false),
                     0);
    ck_assert_str_eq(closed, " error=0  client_fin=11 sessions_total=10");
    free(closed);
}

TEST(counters_set, two_sets_are_merged)
{
    struct counters_view v;

    counters_began(&before.counters);
    counters_ended(&before.counters, SESSION_LIMIT, 1, 2);
    counters_began(&after.counters);
    counters_set_merge(&after.set, &before.set);
    counters_read(&after.counters, &v);
    ck_assert_uint_eq(v.began, 2);
    ck_assert_uint_eq(v.ended[SESSION_LIMIT], 1);
    ck_assert_uint_eq(v.bytes_out, 2);
}
