/* stats/history_record: a history that a new process goes on with, and records it cannot use. */
#include <errno.h>
#include <math.h>
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
static struct counters front;
static struct counters_connects connects;
static int64_t now_ns;
static char *bytes;
static size_t n_bytes;

static const struct figure_object front_object = {.subject = FIGURE_LISTENER, .name = "front"};
static const struct figure_object a_object = {
    .subject = FIGURE_SERVER, .name = "a", .owner = "back"};

static void setup(void)
{
    ck_assert_int_eq(history_create(&h, HISTORY_MAX_BYTES), 0);
    history_keep(h, 3600 * NS_PER_S);
    front = (struct counters){.began = 0};
    connects = (struct counters_connects){.failed = 0};
    now_ns = 1000000 * NS_PER_S + NS_PER_S / 2;
    bytes = NULL;
}

static void teardown(void)
{
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    history_destroy(h);
    text_free(&text);
    free(bytes);
}

static void sample_after(int64_t ns)
{
    now_ns += ns;
    history_begin(h, now_ns, 3, 1);
    counters_figures(&front, &front_object, history_visitor(h));
    counters_connects_figures(&connects, &a_object, history_visitor(h));
    history_end(h);
}

/* Count ${n} sessions in each of ${seconds}. */
static void serve(unsigned seconds, unsigned n)
{
    for (unsigned s = 0; s < seconds; s++) {
        for (unsigned i = 0; i < n; i++) {
            counters_began(&front);
            counters_connected(&connects, 3 * NS_PER_MS);
            counters_ended(&front, SESSION_CLIENT_FIN, 10, 20);
        }
        sample_after(NS_PER_S);
    }
}

/* The samples of ${key} with `]`; NULL: none. */
static const char *samples(enum figure_subject subject, const char *name, unsigned step_s,
                           const char *key)
{
    const struct history_query query = {
        .subject = subject, .name = name, .level = (unsigned)history_level(h, step_s)};
    char quoted[64], *from;

    text_free(&text);
    if (history_level(h, step_s) < 0 || !history_json(h, &query, now_ns, &text))
        return NULL;
    snprintf(quoted, sizeof(quoted), "\"%s\":[", key);
    from = strstr(text.bytes, quoted);
    if (!from)
        return NULL;
    from += strlen(quoted) - 1;
    from[strcspn(from, "]") + 1] = '\0';
    return from;
}

static void write_record(void)
{
    FILE *f = open_memstream(&bytes, &n_bytes);

    ck_assert_ptr_nonnull(f);
    history_write(h, f);
    ck_assert_int_eq(fclose(f), 0);
}

/* Begin anew, and read the first ${n} bytes of the record, with byte ${at} replaced. */
static int read_record(size_t n, size_t at, char byte)
{
    char *copy = malloc(n + 1);
    int rc;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    if (at < n)
        copy[at] = byte;
    history_destroy(h);
    ck_assert_int_eq(history_create(&h, HISTORY_MAX_BYTES), 0);
    rc = history_read(h, copy, n, now_ns);
    free(copy);
    return rc;
}

static int read_all(void)
{
    return read_record(n_bytes, n_bytes, 0);
}

/* What is wrong is seen, and another history begins. */
static void is_refused(int rc)
{
    ck_assert_int_eq(rc, -EINVAL);
    ck_assert_uint_eq(history_bytes(h), 0);
    ck_assert_ptr_null(samples(FIGURE_PROCESS, NULL, 1, "sessions"));
}

GROUP(history_record, setup, teardown);

TEST(history_record, the_samples_go_on_without_a_gap_or_a_spike)
{
    sample_after(0);
    serve(3, 2);
    serve(1, 0);
    write_record();
    for (unsigned i = 0; i < 5; i++) /* the old process reports these, the new one counts them */
        counters_began(&front);
    ck_assert_int_eq(read_all(), 0);
    history_keep(h, 3600 * NS_PER_S);
    sample_after(NS_PER_S);
    serve(1, 7);
    ck_assert_str_eq(samples(FIGURE_LISTENER, "front", 1, "new_sessions"), "[2,2,2,0,5,7]");
    ck_assert_str_eq(samples(FIGURE_LISTENER, "front", 1, "client_fin"), "[2,2,2,0,0,7]");
    ck_assert_str_eq(samples(FIGURE_PROCESS, NULL, 1, "new_sessions"), "[2,2,2,0,5,7]");
    ck_assert_str_eq(samples(FIGURE_UPSTREAM, "back", 1, "connect_p99_ms"),
                     "[4.096,4.096,4.096,null,null,4.096]");
}

TEST(history_record, a_long_sample_that_was_under_way_is_whole)
{
    sample_after(0);
    serve(14, 2);
    write_record();
    ck_assert_int_eq(read_all(), 0);
    serve(16, 2);
    ck_assert_str_eq(samples(FIGURE_LISTENER, "front", 10, "new_sessions"), "[20,20,20]");
    ck_assert_str_eq(samples(FIGURE_PROCESS, NULL, 10, "new_sessions"), "[20,20,20]");
    ck_assert_str_eq(samples(FIGURE_UPSTREAM, "back", 10, "connect_p50_ms"), "[4.096,4.096,4.096]");
}

TEST(history_record, a_start_of_some_seconds_is_a_gap)
{
    sample_after(0);
    serve(2, 2);
    write_record();
    ck_assert_int_eq(read_all(), 0);
    sample_after(5 * NS_PER_S);
    serve(1, 1);
    ck_assert_str_eq(samples(FIGURE_LISTENER, "front", 1, "new_sessions"),
                     "[2,2,null,null,null,null,0,1]");
}

TEST(history_record, an_empty_history_is_read)
{
    write_record();
    ck_assert_int_eq(read_all(), 0);
    sample_after(0);
    serve(1, 1);
    ck_assert_str_eq(samples(FIGURE_LISTENER, "front", 1, "new_sessions"), "[1]");
}

TEST(history_record, without_a_history_there_is_none)
{
    history_keep(h, 0);
    sample_after(0);
    write_record();
    ck_assert_int_eq(read_all(), 0);
    ck_assert_int_eq(history_level(h, 1), -1);
}

TEST(history_record, a_level_that_is_not_kept_any_more_is_dropped)
{
    sample_after(0);
    serve(12, 1);
    write_record();
    ck_assert_int_eq(read_all(), 0);
    history_keep(h, 60 * NS_PER_S);
    ck_assert_int_eq(history_level(h, 10), -1);
    serve(1, 3);
    ck_assert_ptr_nonnull(strstr(samples(FIGURE_LISTENER, "front", 1, "new_sessions"), ",1,3]"));
}

TEST(history_record, an_object_that_is_not_there_any_more_is_forgotten)
{
    sample_after(0);
    serve(1, 1);
    write_record();
    ck_assert_int_eq(read_all(), 0);
    ck_assert_ptr_nonnull(samples(FIGURE_LISTENER, "front", 1, "new_sessions"));
    history_begin(h, now_ns + NS_PER_S, 0, 1);
    history_end(h);
    ck_assert_ptr_null(samples(FIGURE_LISTENER, "front", 1, "new_sessions"));
}

TEST(history_record, a_record_cut_anywhere_is_refused)
{
    history_keep(h, 60 * NS_PER_S);
    sample_after(0);
    serve(2, 1);
    write_record();
    for (size_t n = 0; n < n_bytes; n++)
        is_refused(read_record(n, n, 0));
}

TEST(history_record, any_wrong_byte_is_refused_or_harmless)
{
    history_keep(h, 60 * NS_PER_S);
    sample_after(0);
    serve(2, 1);
    write_record();
    for (size_t at = 0; at < n_bytes; at++) {
        static const char wrong[] = {'9', ' ', '-', '\n', '\xff', '\0'};

        for (unsigned i = 0; i < sizeof(wrong); i++) {
            int rc = read_record(n_bytes, at, wrong[i]);

            ck_assert(rc == 0 || rc == -EINVAL);
            (void)samples(FIGURE_LISTENER, "front", 1, "new_sessions");
            sample_after(NS_PER_S);
            now_ns -= NS_PER_S;
        }
    }
}

TEST(history_record, a_sample_of_the_future_is_refused)
{
    sample_after(0);
    serve(1, 1);
    write_record();
    now_ns -= 10 * NS_PER_S;
    is_refused(read_all());
}

TEST(history_record, a_value_that_is_no_number_is_refused)
{
    const float nan = NAN;

    sample_after(0);
    serve(1, 1);
    write_record();
    for (size_t i = 0; i + sizeof(nan) < n_bytes; i++) {
        const float one = 1;

        if (memcmp(bytes + i, &one, sizeof(one)) != 0)
            continue;
        memcpy(bytes + i, &nan, sizeof(nan));
        is_refused(read_all());
        return;
    }
    ck_abort_msg("no sample of 1");
}

TEST(history_record, what_another_version_keeps_is_skipped)
{
    static const char record[] = "history 1 60000000000 more\n"
                                 "level 7000000000 3 21000000000 2\n\1\1\n"
                                 "level 1000000000 9 9500000000 3\n\1\1\1\n"
                                 "object planet x\n"
                                 "before 1000000000 7 0 new=1\n"
                                 "object listener front\n"
                                 "before 1000000000 7 0 rain=3 began=3\n"
                                 "ring 1000000000 weather 0 1\n\0\0\0\0\n"
                                 "ring 1000000000 new_sessions 0 2\n\0\0\0@\0\0\0@\n"
                                 "end\n";

    bytes = malloc(sizeof(record));
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, record, sizeof(record));
    n_bytes = sizeof(record) - 1;
    now_ns = 9 * NS_PER_S + NS_PER_S / 2;
    front.began = 3;
    ck_assert_int_eq(read_all(), 0);
    sample_after(NS_PER_S);
    ck_assert_str_eq(samples(FIGURE_LISTENER, "front", 1, "new_sessions"), "[0,2,2,0]");
}

TEST(history_record, without_memory_it_begins_anew)
{
    sample_after(0);
    serve(2, 1);
    write_record();
    for (unsigned skip = 0; skip < 40; skip++) {
        char *copy = malloc(n_bytes + 1);
        int rc;

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, bytes, n_bytes + 1);
        history_destroy(h);
        ck_assert_int_eq(history_create(&h, HISTORY_MAX_BYTES), 0);
        fault_plan(FAULT_MEMORY, skip, FAULT_ALWAYS, ENOMEM);
        rc = history_read(h, copy, n_bytes, now_ns);
        fault_plan(FAULT_MEMORY, 0, 0, 0);
        ck_assert(rc == 0 || rc == -ENOMEM);
        if (rc < 0)
            ck_assert_uint_eq(history_bytes(h), 0);
        free(copy);
    }
}
