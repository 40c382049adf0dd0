/* stats/figure_json: figures as JSON. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/address.h"
#include "stats/figure.h"
#include "stats/figure_json.h"
#include "stats/session_reason.h"
#include "support/suite.h"

struct sample {
    const char *state, *doing;
    uint64_t turns;
    int64_t poll_ns;
    bool panic;
    struct figure_addresses addresses;
};

struct ends {
    uint64_t ended[SESSION_REASONS];
};

static const struct figure ends_rows[] = {FIGURE_OF(struct ends, COUNTER, NUMBER, ended, "")};

static const struct figure_table ends_table = {FIGURE_TABLE(struct ends, ends_rows)};

static const struct figure sample_rows[] = {
    FIGURE_OF(struct sample, STATE, NUMBER, state, ""),
    FIGURE_OF(struct sample, TEXT, NUMBER, doing, ""),
    FIGURE_OF(struct sample, COUNTER, NUMBER, turns, ""),
    FIGURE_MS_OF(struct sample, COUNTER, poll, 0, ""),
    FIGURE_OF(struct sample, GAUGE, NUMBER, panic, ""),
    FIGURE_OF(struct sample, TEXT, NUMBER, addresses, ""),
};

static const struct figure_table sample_table = {FIGURE_TABLE(struct sample, sample_rows)};

struct one {
    uint64_t corrupt;
};

static const struct figure one_rows[] = {FIGURE_OF(struct one, COUNTER, NUMBER, corrupt, "")};

static const struct figure_table one_table = {.prefix = "frames_",
                                              FIGURE_TABLE(struct one, one_rows)};

struct count {
    unsigned servers;
};

static const struct figure count_rows[] = {FIGURE_OF(struct count, GAUGE, NUMBER, servers, "")};

static const struct figure_table count_table = {FIGURE_TABLE(struct count, count_rows)};

struct times {
    struct histogram_view duration;
};

static const struct figure times_rows[] = {
    FIGURE_ROW(struct times, duration.count, "count", FIGURE_DERIVED, FIGURE_NUMBER, 0, ""),
    FIGURE_OF(struct times, HISTOGRAM, NS, duration, ""),
};

static const struct figure_table times_table = {
    .part = "turn", .prefix = "turn_", FIGURE_TABLE(struct times, times_rows)};

static struct figure_json j;
static struct text text;

static void setup(void)
{
    text = (struct text){.bytes = NULL};
}

static void teardown(void)
{
    text_free(&text);
}

static void show(const struct figure_table *table, enum figure_subject subject, const char *name,
                 const void *values)
{
    const struct figure_object object = {.subject = subject, .name = name};

    figure_show(&j.visitor, table, &object, values);
}

static void show_server(const char *upstream, const char *name)
{
    const struct figure_object object = {.subject = FIGURE_SERVER, .name = name, .owner = upstream};
    const struct one one = {1};

    figure_show(&j.visitor, &one_table, &object, &one);
}

GROUP(json, setup, teardown);

TEST(json, without_objects_the_array_is_empty)
{
    figure_json_begin(&j, FIGURE_LOOP, &text);
    figure_json_end(&j);
    ck_assert_str_eq(text.bytes, "[]");
}

TEST(json, objects_have_the_figures_of_all_their_tables)
{
    struct address addresses[3];
    struct sample s = {.state = "started",
                       .turns = UINT64_MAX,
                       .poll_ns = 1500001,
                       .panic = true,
                       .addresses = {addresses, 2}};
    const struct one one = {3};

    ck_assert_int_eq(address_parse(&addresses[0], 2, "127.0.0.1:7"), 1);
    ck_assert_int_eq(address_parse(&addresses[1], 2, "[::1]:7"), 1);
    figure_json_begin(&j, FIGURE_LISTENER, &text);
    show(&sample_table, FIGURE_LISTENER, "web", &s);
    show(&one_table, FIGURE_LISTENER, "b", &one);
    show(&one_table, FIGURE_LOOP, "other", &one);
    figure_json_end(&j);
    ck_assert_str_eq(text.bytes,
                     "[{\"name\":\"web\",\"state\":\"started\",\"doing\":null,"
                     "\"turns\":18446744073709551615,\"poll_ms\":1.500001,\"panic\":true,"
                     "\"addresses\":[\"127.0.0.1:7\",\"[::1]:7\"]},"
                     "{\"name\":\"b\",\"frames_corrupt\":3}]");
}

TEST(json, counts_of_ends_are_an_object_with_a_member_for_each_reason)
{
    struct ends ends = {.ended = {[SESSION_OPEN + 1] = 7, [SESSION_REASONS - 1] = 9}};
    char word[SESSION_REASON_WORD_BYTES], first[64], last[64];

    snprintf(first, sizeof(first), "\"ended\":{\"%s\":7,",
             session_reason_word(word, SESSION_OPEN + 1));
    snprintf(last, sizeof(last), "\"%s\":9}}]", session_reason_word(word, SESSION_REASONS - 1));
    figure_json_begin(&j, FIGURE_LISTENER, &text);
    show(&ends_table, FIGURE_LISTENER, "web", &ends);
    figure_json_end(&j);
    ck_assert_ptr_nonnull(strstr(text.bytes, first));
    ck_assert_ptr_nonnull(strstr(text.bytes, last));
}

TEST(json, servers_are_within_their_upstream)
{
    static const char *const name = "a";
    const struct one one = {2};
    const struct count count = {2}; /* the array takes its place */

    figure_json_begin(&j, FIGURE_UPSTREAM, &text);
    show(&one_table, FIGURE_UPSTREAM, name, &one);
    show(&count_table, FIGURE_UPSTREAM, name, &count);
    show_server(name, "x");
    show_server(name, "y");
    show(&one_table, FIGURE_UPSTREAM, "none", &one);
    show(&one_table, FIGURE_UPSTREAM, "last", &one);
    show_server("last", "x");
    figure_json_end(&j);
    ck_assert_str_eq(text.bytes, "[{\"name\":\"a\",\"frames_corrupt\":2,\"servers\":["
                                 "{\"name\":\"x\",\"frames_corrupt\":1},"
                                 "{\"name\":\"y\",\"frames_corrupt\":1}]},"
                                 "{\"name\":\"none\",\"frames_corrupt\":2,\"servers\":[]},"
                                 "{\"name\":\"last\",\"frames_corrupt\":2,\"servers\":["
                                 "{\"name\":\"x\",\"frames_corrupt\":1}]}]");
}

TEST(json, a_histogram_has_its_quantiles)
{
    struct histogram h = {.ns = 0};
    struct times t;

    for (int i = 0; i < 98; i++)
        histogram_count(&h, 500);
    histogram_count(&h, 3 * NS_PER_MS);
    histogram_count(&h, 3600 * NS_PER_S);
    histogram_read(&h, &t.duration);
    figure_json_begin(&j, FIGURE_LOOP, &text);
    show(&times_table, FIGURE_LOOP, "l", &t);
    figure_json_end(&j);
    ck_assert_str_eq(text.bytes, "[{\"name\":\"l\",\"turn\":{\"count\":100,"
                                 "\"sum_ms\":3600003.049000,\"p50_ms\":0.001000,"
                                 "\"p99_ms\":4.096000,\"buckets\":{\"under_1us\":98,"
                                 "\"under_4096us\":1,\"longer\":1}}}]");
}

TEST(json, strings_are_escaped_and_valid_utf_8)
{
    figure_json_string(&text, "a\"b\\c\n\x01\x7f\xff\xc3\xa9");
    ck_assert_str_eq(text.bytes, "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\xef\xbf\xbd\xc3\xa9\"");
}
