/* stats/history: samples, gaps, resolutions, objects that go, and a history without memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "stats/counters.h"
#include "stats/history.h"
#include "support/fault.h"
#include "support/suite.h"

static struct history *h;
static struct text text;
static struct counters front, back;
static struct counters_connects connects;
static int64_t now_ns;
static bool has_front;

static const struct figure_object front_object = {.subject = FIGURE_LISTENER, .name = "front"};
static const struct figure_object back_object = {.subject = FIGURE_UPSTREAM, .name = "back"};
static const struct figure_object a_object = {
    .subject = FIGURE_SERVER, .name = "a", .owner = "back"};

static void setup(void)
{
    ck_assert_int_eq(history_create(&h, HISTORY_MAX_BYTES), 0);
    history_keep(h, 3600 * NS_PER_S);
    front = back = (struct counters){.began = 0};
    connects = (struct counters_connects){.failed = 0};
    now_ns = 1000000 * NS_PER_S + NS_PER_S / 2;
    has_front = true;
}

static void teardown(void)
{
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    history_destroy(h);
    text_free(&text);
}

static void sample_after(int64_t ns, unsigned byte_rounds)
{
    now_ns += ns;
    history_begin(h, now_ns, 3, byte_rounds);
    if (has_front)
        counters_figures(&front, &front_object, history_visitor(h));
    counters_figures(&back, &back_object, history_visitor(h));
    counters_connects_figures(&connects, &a_object, history_visitor(h));
    history_end(h);
}

/* Count ${n} sessions in each of ${seconds}. */
static void serve(unsigned seconds, unsigned n)
{
    for (unsigned s = 0; s < seconds; s++) {
        for (unsigned i = 0; i < n; i++) {
            counters_began(&front);
            counters_ended(&front, SESSION_CLIENT_FIN, 10, 20);
        }
        sample_after(NS_PER_S, 1);
    }
}

/* The array ${key} of ${name}, with `]`. */
static const char *array(enum figure_subject subject, const char *name, unsigned step_s,
                         const char *key)
{
    const struct history_query query = {
        .subject = subject, .name = name, .level = (unsigned)history_level(h, step_s)};
    char quoted[64];
    char *from;

    text_free(&text);
    if (!history_json(h, &query, now_ns, &text))
        return NULL;
    snprintf(quoted, sizeof(quoted), "\"%s\":[", key);
    from = strstr(text.bytes, quoted);
    if (!from)
        return NULL;
    from += strlen(quoted) - 1;
    from[strcspn(from, "]") + 1] = '\0';
    return from;
}

static const char *of_front(const char *key)
{
    return array(FIGURE_LISTENER, "front", 1, key);
}

GROUP(history, setup, teardown);

TEST(history, a_sample_is_what_was_gained)
{
    sample_after(0, 1);
    serve(2, 3);
    serve(1, 0);
    serve(1, 5);
    ck_assert_str_eq(of_front("new_sessions"), "[3,3,0,5]");
    ck_assert_str_eq(of_front("bytes_in"), "[30,30,0,50]");
    ck_assert_str_eq(of_front("client_fin"), "[3,3,0,5]");
    ck_assert_str_eq(array(FIGURE_PROCESS, NULL, 1, "new_sessions"), "[3,3,0,5]");
    ck_assert_str_eq(array(FIGURE_PROCESS, NULL, 1, "sessions"), "[3,3,3,3]");
}

TEST(history, quantiles_are_those_of_the_sample_of_all_servers)
{
    sample_after(0, 1);
    counters_connected(&connects, 3 * NS_PER_MS);
    counters_connect_failed(&connects);
    sample_after(NS_PER_S, 1);
    counters_connected(&connects, 100 * NS_PER_US);
    sample_after(NS_PER_S, 1);
    sample_after(NS_PER_S, 1);
    ck_assert_str_eq(array(FIGURE_UPSTREAM, "back", 1, "connect_p99_ms"), "[4.096,0.128,null]");
    ck_assert_str_eq(array(FIGURE_UPSTREAM, "back", 1, "connect_failures"), "[1,0,0]");
    ck_assert_str_eq(array(FIGURE_PROCESS, NULL, 1, "connect_p50_ms"), "[4.096,0.128,null]");
}

TEST(history, a_pause_of_the_process_is_a_gap_and_no_spike)
{
    sample_after(0, 1);
    serve(2, 4);
    for (unsigned i = 0; i < 60; i++)
        counters_began(&front);
    sample_after(6 * NS_PER_S, 1);
    serve(1, 4);
    ck_assert_str_eq(of_front("new_sessions"), "[4,4,null,null,null,null,null,10,4]");
}

TEST(history, a_late_sample_is_spread_over_its_seconds)
{
    sample_after(0, 1);
    serve(1, 4);
    for (unsigned i = 0; i < 8; i++)
        counters_began(&front);
    sample_after(2 * NS_PER_S, 1);
    ck_assert_str_eq(of_front("new_sessions"), "[4,4,4]");
}

TEST(history, bytes_that_were_counted_after_ten_rounds_are_spread_over_them)
{
    sample_after(0, 1);
    sample_after(NS_PER_S, 1);
    sample_after(NS_PER_S, 0);
    sample_after(NS_PER_S, 0);
    counters_moved(&front, 3000, 0);
    sample_after(NS_PER_S, 3);
    ck_assert_str_eq(of_front("bytes_in"), "[0,1000,1000,1000]");
}

TEST(history, coarse_samples_are_sums_and_the_most_sessions)
{
    now_ns = 1000000 * NS_PER_S + NS_PER_S / 2;
    sample_after(0, 1);
    counters_began(&front);
    serve(5, 2);
    counters_ended(&front, SESSION_IDLE, 0, 0);
    serve(25, 2);
    ck_assert_str_eq(array(FIGURE_LISTENER, "front", 10, "new_sessions"), "[21,20,20]");
    ck_assert_str_eq(array(FIGURE_LISTENER, "front", 10, "sessions"), "[1,0,0]");
    ck_assert_str_eq(array(FIGURE_LISTENER, "front", 10, "idle"), "[1,0,0]");
}

TEST(history, an_object_that_goes_is_freed_and_one_that_comes_begins_there)
{
    sample_after(0, 1);
    serve(3, 2);
    has_front = false;
    sample_after(NS_PER_S, 1);
    ck_assert_ptr_null(of_front("new_sessions"));
    ck_assert_str_eq(array(FIGURE_PROCESS, NULL, 1, "new_sessions"), "[2,2,2,0]");
    has_front = true;
    sample_after(NS_PER_S, 1);
    serve(1, 7);
    ck_assert_str_eq(of_front("new_sessions"), "[7]");
}

TEST(history, a_server_that_goes_with_its_counters_is_no_negative_sample)
{
    sample_after(0, 1);
    counters_connected(&connects, NS_PER_MS);
    sample_after(NS_PER_S, 1);
    connects = (struct counters_connects){.failed = 0};
    sample_after(NS_PER_S, 1);
    ck_assert_str_eq(array(FIGURE_UPSTREAM, "back", 1, "connect_p99_ms"), "[1.024,null]");
}

TEST(history, resolutions_follow_the_time_that_is_kept)
{
    ck_assert_int_eq(history_level(h, 10), 1);
    ck_assert_int_eq(history_level(h, 60), -1);
    history_keep(h, NS_PER_DAY);
    ck_assert_int_eq(history_level(h, 60), 2);
    history_keep(h, 60 * NS_PER_S);
    ck_assert_int_eq(history_level(h, 1), 0);
    ck_assert_int_eq(history_level(h, 10), -1);
    history_keep(h, 0);
    ck_assert_int_eq(history_level(h, 1), -1);
}

TEST(history, a_change_of_the_time_keeps_the_samples)
{
    sample_after(0, 1);
    serve(3, 2);
    history_keep(h, NS_PER_DAY);
    serve(1, 2);
    history_keep(h, 2 * 60 * NS_PER_S);
    serve(1, 2);
    ck_assert_str_eq(of_front("new_sessions"), "[2,2,2,2,2]");
}

TEST(history, only_as_much_as_configured_is_shown)
{
    history_keep(h, 60 * NS_PER_S);
    sample_after(0, 1);
    serve(80, 1);
    ck_assert_uint_eq(strlen(of_front("new_sessions")), 60 * 2 + 1);
}

TEST(history, a_day_of_a_busy_listener_is_under_1_mb)
{
    history_keep(h, NS_PER_DAY);
    sample_after(0, 1);
    for (unsigned i = 0; i < 200; i++) {
        for (unsigned r = SESSION_OPEN + 1; r < SESSION_REASONS; r++) {
            counters_began(&front);
            counters_ended(&front, (enum session_reason)r, 10, 20);
        }
        counters_began(&front);
        sample_after(NS_PER_S, 1);
    }
    ck_assert_uint_lt(history_bytes(h), 2 << 20); /* of the listener, and of the process */
    ck_assert_uint_lt(history_bytes(h) / 2, 1 << 20);
}

/* A round with ${n} idle upstreams more. */
static void sample_many(unsigned n)
{
    static struct counters idle;
    char name[16];

    now_ns += NS_PER_S;
    history_begin(h, now_ns, 3, 1);
    counters_figures(&front, &front_object, history_visitor(h));
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "idle%u", i);
        counters_figures(&idle, &(struct figure_object){.subject = FIGURE_UPSTREAM, .name = name},
                         history_visitor(h));
    }
    history_end(h);
}

TEST(history, an_idle_object_takes_less_than_2_kb_and_is_known_to_be_0)
{
    size_t before;

    sample_many(1);
    sample_many(1);
    before = history_bytes(h);
    sample_many(1001);
    ck_assert_uint_gt(history_bytes(h) - before, 1000 * 500); /* it is counted */
    ck_assert_uint_lt(history_bytes(h) - before, 1000 * 2000);
    sample_many(1001);
    ck_assert_str_eq(array(FIGURE_UPSTREAM, "idle1000", 1, "new_sessions"), "[0]");
    ck_assert_str_eq(of_front("new_sessions"), "[0,0,0]");
    sample_many(1);
    ck_assert_uint_eq(history_bytes(h), before);
}

TEST(history, idle_objects_count_for_the_limit)
{
    history_destroy(h);
    ck_assert_int_eq(history_create(&h, 100000), 0);
    history_keep(h, 3600 * NS_PER_S);
    sample_many(1000);
    ck_assert(history_is_short(h));
    ck_assert_uint_le(history_bytes(h), 100000);
    sample_many(5);
    ck_assert(!history_is_short(h));
    ck_assert_uint_lt(history_bytes(h), 20000);
}

TEST(history, without_memory_an_object_begins_later_and_the_process_has_its_sessions)
{
    sample_after(0, 1);
    serve(1, 1);
    has_front = false;
    sample_after(NS_PER_S, 1);
    has_front = true;
    front = (struct counters){.began = 0};
    sample_after(NS_PER_S, 1);
    fault_plan(FAULT_MEMORY, 0, FAULT_ALWAYS, ENOMEM);
    serve(2, 2);
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    ck_assert(history_is_short(h));
    (void)of_front("new_sessions");
    ck_assert_str_eq(of_front("new_sessions"), "[]");
    serve(2, 3);
    ck_assert(!history_is_short(h));
    ck_assert_str_eq(of_front("new_sessions"), "[3]");
    ck_assert_str_eq(array(FIGURE_PROCESS, NULL, 1, "new_sessions"), "[1,0,0,2,2,3,3]");
}

TEST(history, without_memory_a_figure_begins_later_and_that_is_said)
{
    sample_after(0, 1);
    front.bytes_in = 1; /* a figure that is kept */
    sample_after(NS_PER_S, 1);
    fault_plan(FAULT_MEMORY, 0, FAULT_ALWAYS, ENOMEM);
    serve(2, 2);
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    ck_assert(history_is_short(h));
    (void)of_front("new_sessions");
    ck_assert_str_eq(of_front("new_sessions"), "[null,null,null]");
    serve(2, 3);
    ck_assert(!history_is_short(h));
    ck_assert_str_eq(of_front("new_sessions"), "[null,null,null,3,3]");
}

TEST(history, the_limit_of_its_memory_is_as_no_memory)
{
    history_destroy(h);
    ck_assert_int_eq(history_create(&h, 4000), 0);
    history_keep(h, 3600 * NS_PER_S);
    sample_after(0, 1);
    serve(3, 2);
    ck_assert(history_is_short(h));
    ck_assert_uint_le(history_bytes(h), 4000);
    ck_assert_ptr_nonnull(of_front("new_sessions"));
}

static int create(void *cookie)
{
    struct history *made;
    int rc = history_create(&made, HISTORY_MAX_BYTES);

    (void)cookie;
    if (rc == 0)
        history_destroy(made);
    return rc;
}

TEST(history, each_failed_allocation_of_a_new_one_is_reported)
{
    ck_assert_uint_gt(fault_each_allocation(create, NULL), 0);
}
