/* stats/figure: the names of metrics, and the lines of the log. */
#include "base/clock.h"
#include "stats/figure.h"
#include "stats/figure_log.h"
#include "support/log_lines.h"
#include "support/suite.h"

struct sample {
    uint64_t sessions_total, bytes_in, buffered, retries;
    int64_t poll_ns;
    unsigned io_ratio, load;
};

static const struct figure rows[] = {
    FIGURE_OF(struct sample, COUNTER, NUMBER, sessions_total, ""),
    FIGURE_OF(struct sample, COUNTER, BYTES, bytes_in, ""),
    FIGURE_OF(struct sample, GAUGE, BYTES, buffered, ""),
    FIGURE_OF(struct sample, COUNTER, NUMBER, retries, ""),
    FIGURE_MS_OF(struct sample, COUNTER, poll, 1, ""),
    FIGURE_OF(struct sample, GAUGE, PERCENT, io_ratio, ""),
    FIGURE_OF(struct sample, GAUGE, PERCENT, load, ""),
    FIGURE_OF(struct sample, DERIVED, NUMBER, retries, ""),
    FIGURE_OF(struct sample, TEXT, NUMBER, retries, ""),
};

static const char *const names[] = {"reactord_upstream_x_sessions_total",
                                    "reactord_upstream_x_bytes_in_total",
                                    "reactord_upstream_x_buffered_bytes",
                                    "reactord_upstream_x_retries_total",
                                    "reactord_upstream_x_poll_seconds_total",
                                    "reactord_upstream_x_io_ratio",
                                    "reactord_upstream_x_load_ratio",
                                    NULL,
                                    NULL};

static const struct figure_table named = {.prefix = "x_", FIGURE_TABLE(struct sample, rows)};

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
}

GROUP(figure, setup, NULL);

TEST_EACH(figure, a_metric_is_named_by_rule, sizeof(rows) / sizeof(rows[0]))
{
    char name[FIGURE_METRIC_BYTES];

    ck_assert(figure_metric(name, FIGURE_UPSTREAM, &named, &rows[_i]) == (names[_i] != NULL));
    if (names[_i])
        ck_assert_str_eq(name, names[_i]);
}

TEST_EACH(figure, every_subject_has_a_word_for_metrics, FIGURE_SUBJECTS)
{
    const struct figure_words *words = figure_words((enum figure_subject)_i);

    ck_assert_ptr_nonnull(words->metric);
    ck_assert(!words->owner_label || words->label);
}

struct waits {
    uint64_t limit_waits;
};

static const struct figure waits_rows[] = {
    FIGURE_OF(struct waits, COUNTER, NUMBER, limit_waits, ""),
};

static const struct figure_table at_zero = {.is_not_logged_at_zero = true,
                                            FIGURE_TABLE(struct waits, waits_rows)};
static const struct figure_table quiet = {.is_not_logged = true,
                                          FIGURE_TABLE(struct waits, waits_rows)};

TEST(figure, line_of_zeroes_may_be_left_out)
{
    const struct figure_object object = {.subject = FIGURE_LISTENER, .name = "web"};
    struct waits w = {0};

    figure_show(figure_log(), &at_zero, &object, &w);
    ck_assert_uint_eq(log_lines_with("stats"), 0);
    w.limit_waits = 2;
    figure_show(figure_log(), &at_zero, &object, &w);
    EXPECT_LOG_LINES("stats listen web limit_waits=2", 1);
    figure_show(figure_log(), &quiet, &object, &w);
    EXPECT_LOG_LINES("stats", 1);
}

struct live {
    atomic_uint weight;
    atomic_bool backup;
    _Atomic uint64_t downs;
    _Atomic int64_t left;
};

struct live_view {
    const char *address;
    bool is_up;
};

static const struct figure live_rows[] = {
    FIGURE_LIVE(struct live, GAUGE, NUMBER, weight, "weight", ""),
    FIGURE_OF(struct live_view, TEXT, NUMBER, address, ""),
    FIGURE_LIVE(struct live, GAUGE, NUMBER, backup, "backup", ""),
    FIGURE_LIVE(struct live, COUNTER, NUMBER, downs, "downs", ""),
    FIGURE_OF(struct live_view, GAUGE, NUMBER, is_up, ""),
    FIGURE_LIVE(struct live, GAUGE, NUMBER, left, "left", ""),
};

static const struct figure_table live_table = {
    FIGURE_LIVE_TABLE(sizeof(struct live_view), live_rows)};
static const struct figure only_live_rows[] = {
    FIGURE_LIVE(struct live, COUNTER, NUMBER, downs, "downs", "")};
static const struct figure_table only_live_table = {.is_not_logged_at_zero = true,
                                                    FIGURE_LIVE_TABLE(0, only_live_rows)};

TEST(figure, live_figures_are_read_from_the_object_and_others_from_the_view)
{
    const struct figure_object object = {.subject = FIGURE_SERVER, .name = "a", .owner = "back"};
    struct live live = {.weight = 7, .backup = true, .downs = UINT64_MAX, .left = -2};
    const struct live_view view = {"there", true};

    figure_show_live(figure_log(), &live_table, &object, &view, &live);
    EXPECT_LOG_LINES("stats server back/a weight=7 address=\"there\" backup=yes "
                     "downs=18446744073709551615 is_up=yes left=-2",
                     1);
}

TEST(figure, a_line_of_live_figures_that_are_zero_may_be_left_out)
{
    const struct figure_object object = {.subject = FIGURE_SERVER, .name = "a", .owner = "back"};
    struct live live = {.weight = 7};

    figure_show_live(figure_log(), &only_live_table, &object, NULL, &live);
    ck_assert_uint_eq(log_lines_with("stats"), 0);
    atomic_store(&live.downs, 1);
    figure_show_live(figure_log(), &only_live_table, &object, NULL, &live);
    EXPECT_LOG_LINES("stats server back/a downs=1", 1);
}

struct word {
    const char *doing;
};

static const struct figure word_rows[] = {FIGURE_OF(struct word, TEXT, NUMBER, doing, "")};
static const struct figure_table word_table = {FIGURE_TABLE(struct word, word_rows)};

TEST(figure, long_line_ends_in_dots)
{
    const struct figure_object object = {.subject = FIGURE_LISTENER, .name = "web"};
    char name[3 * LOG_LINE_BYTES];
    const struct word word = {name};

    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i + 1 < sizeof(name) ? 'x' : '\0';
    figure_show(figure_log(), &word_table, &object, &word);
    EXPECT_LOG_LINES("stats listen web doing=\"xxx", 1);
    EXPECT_LOG_LINES("xxx...", 1);
}
