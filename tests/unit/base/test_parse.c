/* base/parse: a word is taken whole or not at all. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "support/suite.h"

static const char *const no_numbers[] = {
    "",    " ",  "-1",  "+1",  " 1",    "1 ",  "1x",  "x1",   "0x10",
    "010", "00", "1.5", "1e3", "1,000", "\t1", "1\n", "\xb2", "--",
};

GROUP(words, NULL, NULL);

TEST_EACH(words, text_that_is_no_number_is_refused, ARRAY_LEN(no_numbers))
{
    uint64_t n = 77;
    int64_t ns = 77;
    unsigned percent = 77;

    ck_assert_int_eq(parse_uint(&n, no_numbers[_i], UINT64_MAX), -EINVAL);
    ck_assert_int_eq(parse_size(&n, no_numbers[_i], UINT64_MAX), -EINVAL);
    ck_assert_int_eq(parse_duration(&ns, no_numbers[_i], INT64_MAX), -EINVAL);
    ck_assert_int_eq(parse_percent(&percent, no_numbers[_i]), -EINVAL);
    ck_assert_uint_eq(n, 77);
    ck_assert_int_eq(ns, 77);
    ck_assert_uint_eq(percent, 77);
}

TEST(words, a_number_is_taken_up_to_its_maximum)
{
    uint64_t n = 77;

    ck_assert_int_eq(parse_uint(&n, "0", 10), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(parse_uint(&n, "10", 10), 0);
    ck_assert_uint_eq(n, 10);
    ck_assert_int_eq(parse_uint(&n, "11", 10), -ERANGE);
    ck_assert_uint_eq(n, 10);
    ck_assert_int_eq(parse_uint(&n, "18446744073709551615", UINT64_MAX), 0);
    ck_assert_uint_eq(n, UINT64_MAX);
}

TEST(words, a_number_that_overflows_is_out_of_range)
{
    uint64_t n = 77;
    int64_t ns = 77;
    unsigned percent = 77;

    ck_assert_int_eq(parse_uint(&n, "18446744073709551616", UINT64_MAX), -ERANGE);
    ck_assert_int_eq(parse_uint(&n, "99999999999999999999999999999", UINT64_MAX), -ERANGE);
    ck_assert_int_eq(parse_size(&n, "18446744073709551615k", UINT64_MAX), -ERANGE);
    ck_assert_int_eq(parse_size(&n, "99999999999999999999999g", UINT64_MAX), -ERANGE);
    ck_assert_int_eq(parse_duration(&ns, "9223372036854775807s", INT64_MAX), -ERANGE);
    ck_assert_int_eq(parse_duration(&ns, "106752d", INT64_MAX), -ERANGE);
    ck_assert_int_eq(parse_percent(&percent, "99999999999999999999999%"), -ERANGE);
    ck_assert_uint_eq(n, 77);
    ck_assert_int_eq(ns, 77);
    ck_assert_uint_eq(percent, 77);
}

TEST(words, a_number_too_large_with_a_wrong_unit_is_no_number)
{
    uint64_t n;

    ck_assert_int_eq(parse_uint(&n, "99999999999999999999999x", 10), -EINVAL);
    ck_assert_int_eq(parse_size(&n, "99999999999999999999999x", 10), -EINVAL);
}

static const struct {
    const char *word;
    uint64_t bytes;
} sizes[] = {
    {"0", 0},       {"0k", 0},       {"1", 1},        {"7b", 7},       {"1k", 1024},
    {"64K", 65536}, {"2m", 2 << 20}, {"2M", 2 << 20}, {"1g", 1 << 30}, {"3G", UINT64_C(3) << 30},
};

TEST_EACH(words, a_size_has_a_unit_or_none, ARRAY_LEN(sizes))
{
    uint64_t bytes = 77;

    ck_assert_int_eq(parse_size(&bytes, sizes[_i].word, UINT64_MAX), 0);
    ck_assert_uint_eq(bytes, sizes[_i].bytes);
}

TEST(words, the_maximum_of_a_size_is_in_bytes)
{
    uint64_t bytes = 77;

    ck_assert_int_eq(parse_size(&bytes, "1k", 1023), -ERANGE);
    ck_assert_int_eq(parse_size(&bytes, "1k", 1024), 0);
    ck_assert_int_eq(parse_size(&bytes, "1kb", 1 << 20), -EINVAL);
    ck_assert_int_eq(parse_size(&bytes, "k", 1 << 20), -EINVAL);
    ck_assert_uint_eq(bytes, 1024);
}

static const struct {
    const char *word;
    int64_t ns;
} durations[] = {
    {"0", 0},
    {"0s", 0},
    {"100us", 100 * NS_PER_US},
    {"10ms", 10 * NS_PER_MS},
    {"10MS", 10 * NS_PER_MS},
    {"1s", NS_PER_S},
    {"5m", 300 * NS_PER_S},
    {"1h", 3600 * NS_PER_S},
    {"365d", 365 * 86400 * NS_PER_S},
};

TEST_EACH(words, a_duration_has_a_unit_unless_it_is_zero, ARRAY_LEN(durations))
{
    int64_t ns = 77;

    ck_assert_int_eq(parse_duration(&ns, durations[_i].word, INT64_MAX), 0);
    ck_assert_int_eq(ns, durations[_i].ns);
}

TEST(words, a_duration_without_a_unit_is_refused)
{
    int64_t ns = 77;

    ck_assert_int_eq(parse_duration(&ns, "10", INT64_MAX), -EINVAL);
    ck_assert_int_eq(parse_duration(&ns, "ms", INT64_MAX), -EINVAL);
    ck_assert_int_eq(parse_duration(&ns, "10 ms", INT64_MAX), -EINVAL);
    ck_assert_int_eq(parse_duration(&ns, "10w", INT64_MAX), -EINVAL);
    ck_assert_int_eq(parse_duration(&ns, "10sec", INT64_MAX), -EINVAL);
    ck_assert_int_eq(parse_duration(&ns, "2s", NS_PER_S), -ERANGE);
    ck_assert_int_eq(ns, 77);
}

TEST(words, a_percentage_may_have_its_sign)
{
    unsigned percent = 77;

    ck_assert_int_eq(parse_percent(&percent, "0"), 0);
    ck_assert_uint_eq(percent, 0);
    ck_assert_int_eq(parse_percent(&percent, "50%"), 0);
    ck_assert_uint_eq(percent, 50);
    ck_assert_int_eq(parse_percent(&percent, "100"), 0);
    ck_assert_uint_eq(percent, 100);
    ck_assert_int_eq(parse_percent(&percent, "101%"), -ERANGE);
    ck_assert_int_eq(parse_percent(&percent, "50%%"), -EINVAL);
    ck_assert_int_eq(parse_percent(&percent, "%"), -EINVAL);
    ck_assert_uint_eq(percent, 100);
}

TEST(words, a_hex_digit_has_its_value_and_no_other_character_has)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    for (int c = CHAR_MIN; c <= CHAR_MAX; c++) {
        const char *at = c != '\0' ? strchr(digits, c) : NULL;
        long i = at ? at - digits : -1;

        ck_assert_int_eq(parse_hex_digit((char)c), i < 16 ? i : i - 6);
    }
}

TEST(words, boolean_is_one_of_eight_words)
{
    static const char *const yes[] = {"yes", "on", "true", "1", "YES", "On"};
    static const char *const no[] = {"no", "off", "false", "0", "No", "OFF"};
    static const char *const neither[] = {"", "y", "n", "t", "2", "yess", " yes", "enable"};
    bool value = false;

    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        ck_assert_int_eq(parse_bool(&value, yes[i]), 0);
        ck_assert(value);
    }
    for (size_t i = 0; i < ARRAY_LEN(neither); i++) {
        ck_assert_int_eq(parse_bool(&value, neither[i]), -EINVAL);
        ck_assert(value);
    }
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        ck_assert_int_eq(parse_bool(&value, no[i]), 0);
        ck_assert(!value);
    }
}
