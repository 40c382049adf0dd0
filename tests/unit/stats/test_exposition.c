/* stats/exposition: figures as Prometheus' text format. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "stats/exposition.h"
#include "stats/figure.h"
#include "stats/session_reason.h"
#include "support/fault.h"
#include "support/suite.h"

struct sample {
    const char *state, *doing;
    uint64_t turns, bytes;
    int64_t poll_ns;
    unsigned io_ratio;
    bool panic;
};

static const struct figure sample_rows[] = {
    FIGURE_OF(struct sample, STATE, NUMBER, state, "State."),
    FIGURE_OF(struct sample, TEXT, NUMBER, doing, "No metric."),
    FIGURE_OF(struct sample, COUNTER, NUMBER, turns, "Turns."),
    FIGURE_OF(struct sample, GAUGE, BYTES, bytes, "Bytes."),
    FIGURE_MS_OF(struct sample, COUNTER, poll, 0, "Time."),
    FIGURE_OF(struct sample, GAUGE, PERCENT, io_ratio, "Share."),
    FIGURE_OF(struct sample, GAUGE, NUMBER, panic, "1 in panic."),
};

static const struct figure_table sample_table = {FIGURE_TABLE(struct sample, sample_rows)};

struct times {
    struct histogram_view duration;
};

static const struct figure times_rows[] = {
    FIGURE_OF(struct times, HISTOGRAM, NS, duration, "Durations."),
};

static const struct figure_table times_table = {.prefix = "turn_",
                                                FIGURE_TABLE(struct times, times_rows)};

struct ends {
    uint64_t ended[SESSION_REASONS];
};

static const struct figure ends_rows[] = {
    FIGURE_OF(struct ends, REASONS, NUMBER, ended, "Ends."),
};

static const struct figure_table ends_table = {FIGURE_TABLE(struct ends, ends_rows)};

static struct exposition *e;
static struct text text;

static void setup(void)
{
    ck_assert_int_eq(exposition_create(&e), 0);
    text = (struct text){.bytes = NULL};
}

static void teardown(void)
{
    exposition_destroy(e);
    text_free(&text);
}

static void show(const struct figure_table *table, enum figure_subject subject, const char *name,
                 const void *values)
{
    const struct figure_object object = {.subject = subject, .name = name};

    figure_show(exposition_visitor(e), table, &object, values);
}

static const char *write_all(void)
{
    int rc;

    while ((rc = exposition_write(e, &text)) > 0)
        continue;
    ck_assert_int_eq(rc, 0);
    return text.bytes ? text.bytes : "";
}

static void expect_line(const char *line)
{
    char with_end[512];

    snprintf(with_end, sizeof(with_end), "%s\n", line);
    ck_assert_msg(strstr(text.bytes, with_end), "no '%s' in:\n%s", line, text.bytes);
}

GROUP(exposition, setup, teardown);

TEST(exposition, without_samples_the_text_is_empty)
{
    ck_assert_str_eq(write_all(), "");
}

TEST(exposition, figures_have_their_type_and_base_units)
{
    const struct sample s = {.state = "started",
                             .turns = 5,
                             .bytes = 7,
                             .poll_ns = 1500 * NS_PER_MS,
                             .io_ratio = 70,
                             .panic = true};

    show(&sample_table, FIGURE_LOOP, "work-2-1", &s);
    ck_assert_str_eq(write_all(),
                     "# HELP reactord_loop_state State.\n"
                     "# TYPE reactord_loop_state gauge\n"
                     "reactord_loop_state{loop=\"work-2-1\",state=\"started\"} 1\n"
                     "# HELP reactord_loop_turns_total Turns.\n"
                     "# TYPE reactord_loop_turns_total counter\n"
                     "reactord_loop_turns_total{loop=\"work-2-1\"} 5\n"
                     "# HELP reactord_loop_bytes Bytes.\n"
                     "# TYPE reactord_loop_bytes gauge\n"
                     "reactord_loop_bytes{loop=\"work-2-1\"} 7\n"
                     "# HELP reactord_loop_poll_seconds_total Time.\n"
                     "# TYPE reactord_loop_poll_seconds_total counter\n"
                     "reactord_loop_poll_seconds_total{loop=\"work-2-1\"} 1.500000000\n"
                     "# HELP reactord_loop_io_ratio Share.\n"
                     "# TYPE reactord_loop_io_ratio gauge\n"
                     "reactord_loop_io_ratio{loop=\"work-2-1\"} 0.70\n"
                     "# HELP reactord_loop_panic 1 in panic.\n"
                     "# TYPE reactord_loop_panic gauge\n"
                     "reactord_loop_panic{loop=\"work-2-1\"} 1\n");
}

struct rest {
    int64_t left_ns;
};

static const struct figure rest_rows[] = {FIGURE_MS_OF(struct rest, GAUGE, left, 0, "Left.")};
static const struct figure_table rest_table = {FIGURE_TABLE(struct rest, rest_rows)};

TEST(exposition, expired_time_left_is_negative)
{
    const struct rest r = {.left_ns = -1500 * NS_PER_MS};

    show(&rest_table, FIGURE_CERTIFICATE, "a.pem", &r);
    write_all();
    expect_line("reactord_certificate_left_seconds{certificate=\"a.pem\"} -1.500000000");
}

TEST(exposition, an_object_without_name_has_no_labels)
{
    const struct sample s = {.state = "x", .turns = 1};

    show(&sample_table, FIGURE_EXECUTOR, NULL, &s);
    write_all();
    expect_line("reactord_executor_turns_total 1");
    expect_line("reactord_executor_state{state=\"x\"} 1");
}

TEST(exposition, a_metric_has_the_series_of_all_objects_together)
{
    const struct sample s = {.state = "x"};
    static char names[100][16];

    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof(names[i]), "l%d", i);
        show(&sample_table, FIGURE_LISTENER, names[i], &s);
    }
    write_all();
    for (const char *at = text.bytes; (at = strstr(at, "# TYPE ")); at++) {
        char metric[FIGURE_METRIC_BYTES];
        const char *series = strchr(at, '\n') + 1;

        ck_assert_int_eq(sscanf(at, "# TYPE %127s", metric), 1);
        for (int i = 0; i < 100; i++) {
            ck_assert_int_eq(strncmp(series, metric, strlen(metric)), 0);
            series = strchr(series, '\n') + 1;
        }
        ck_assert(*series == '#' || *series == '\0');
    }
}

TEST(exposition, a_server_has_the_labels_of_itself_and_its_upstream)
{
    const struct figure_object server = {.subject = FIGURE_SERVER, .name = "a", .owner = "back"};
    const struct sample s = {.state = "up"};

    figure_show(exposition_visitor(e), &sample_table, &server, &s);
    write_all();
    expect_line("reactord_server_state{server=\"a\",upstream=\"back\",state=\"up\"} 1");
    expect_line("reactord_server_turns_total{server=\"a\",upstream=\"back\"} 0");
}

TEST(exposition, labels_are_escaped_and_valid_utf_8)
{
    const struct sample s = {.state = "x"};

    show(&sample_table, FIGURE_ACCESS_LOG, "/a\"b\\c\nd\xff\xc3\xa9 {}", &s);
    write_all();
    expect_line("reactord_access_log_turns_total{access_log=\"/a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa9 "
                "{}\"} 0");
}

TEST(exposition, huge_values_are_exact)
{
    const struct sample s = {.state = "x", .turns = UINT64_MAX, .poll_ns = INT64_MAX};

    show(&sample_table, FIGURE_LOOP, "l", &s);
    write_all();
    expect_line("reactord_loop_turns_total{loop=\"l\"} 18446744073709551615");
    expect_line("reactord_loop_poll_seconds_total{loop=\"l\"} 9223372036.854775807");
}

TEST(exposition, a_negative_value_is_0)
{
    const struct sample s = {.state = "x", .poll_ns = -5};

    show(&sample_table, FIGURE_LOOP, "l", &s);
    write_all();
    expect_line("reactord_loop_poll_seconds_total{loop=\"l\"} 0.000000000");
}

TEST(exposition, histograms_are_cumulative_with_limits_in_seconds)
{
    struct histogram h = {.ns = 0};
    struct times t;

    histogram_count(&h, 500);              /* under 1 us */
    histogram_count(&h, 3 * NS_PER_US);    /* under 4 us */
    histogram_count(&h, 1500 * NS_PER_US); /* under 2,048 us: no bucket of the text */
    histogram_count(&h, 20 * NS_PER_S);    /* longer */
    histogram_count(&h, 3600 * NS_PER_S);
    histogram_read(&h, &t.duration);
    show(&times_table, FIGURE_LOOP, "l", &t);
    write_all();
    expect_line("# TYPE reactord_loop_turn_duration_seconds histogram");
    expect_line("reactord_loop_turn_duration_seconds_bucket{loop=\"l\",le=\"0.000001\"} 1");
    expect_line("reactord_loop_turn_duration_seconds_bucket{loop=\"l\",le=\"0.000004\"} 2");
    expect_line("reactord_loop_turn_duration_seconds_bucket{loop=\"l\",le=\"0.001024\"} 2");
    expect_line("reactord_loop_turn_duration_seconds_bucket{loop=\"l\",le=\"0.004096\"} 3");
    expect_line("reactord_loop_turn_duration_seconds_bucket{loop=\"l\",le=\"16.777216\"} 3");
    expect_line("reactord_loop_turn_duration_seconds_bucket{loop=\"l\",le=\"+Inf\"} 5");
    expect_line("reactord_loop_turn_duration_seconds_count{loop=\"l\"} 5");
    expect_line("reactord_loop_turn_duration_seconds_sum{loop=\"l\"} 3620.001503500");
    ck_assert_ptr_null(strstr(text.bytes, "le=\"0.000002\""));
}

TEST(exposition, reasons_are_a_label_and_complete)
{
    const struct ends ends = {.ended = {[SESSION_CLIENT_FIN] = 3, [SESSION_ERROR] = 1}};

    show(&ends_table, FIGURE_LISTENER, "web", &ends);
    write_all();
    expect_line("# TYPE reactord_listener_sessions_ended_total counter");
    expect_line("reactord_listener_sessions_ended_total{listener=\"web\",reason=\"client_fin\"} 3");
    expect_line("reactord_listener_sessions_ended_total{listener=\"web\",reason=\"idle\"} 0");
    expect_line("reactord_listener_sessions_ended_total{listener=\"web\",reason=\"error\"} 1");
    ck_assert_ptr_null(strstr(text.bytes, "reason=\"open\""));
}

TEST(exposition, table_of_two_subjects_is_two_metrics)
{
    const struct sample s = {.state = "x"};

    show(&sample_table, FIGURE_LISTENER, "a", &s);
    show(&sample_table, FIGURE_UPSTREAM, "a", &s);
    write_all();
    expect_line("# TYPE reactord_listener_turns_total counter");
    expect_line("# TYPE reactord_upstream_turns_total counter");
}

/* Each allocation fails once: there is an answer, or an error, and no leak (ASan). */
static int attempt(void *cookie)
{
    const struct sample s = {.state = "x"};
    struct exposition *own;
    struct text out = {.bytes = NULL};
    int rc = exposition_create(&own);

    (void)cookie;
    if (rc < 0)
        return rc;
    for (int i = 0; i < 40; i++) {
        const struct figure_object object = {.subject = FIGURE_LOOP, .name = "l"};

        figure_show(exposition_visitor(own), &sample_table, &object, &s);
    }
    while ((rc = exposition_write(own, &out)) > 0)
        continue;
    exposition_destroy(own);
    text_free(&out);
    return rc;
}

TEST(exposition, each_failed_allocation_is_reported)
{
    ck_assert_uint_gt(fault_each_allocation(attempt, NULL), 3);
}
