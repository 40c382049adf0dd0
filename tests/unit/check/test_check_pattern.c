/* check/check_pattern: expressions match as POSIX says; each byte costs the same. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "check/check_pattern.h"
#include "support/suite.h"

static struct arena *arena;
static struct check_pattern *pattern;

static void setup(void)
{
    ck_assert_int_eq(arena_create(&arena), 0);
}

static void teardown(void)
{
    arena_release(arena);
}

/* Is ${text} an expression with a match in these bytes? */
static bool is_in(const char *text, const char *data, size_t len)
{
    struct check_pattern_set set;
    const char *problem = NULL;
    bool found = false;
    int rc = check_pattern_compile(&pattern, arena, text, &problem);

    ck_assert_msg(rc == 0, "%s: %s", text, problem);
    check_pattern_begin(pattern, &set, true);
    for (size_t i = 0; i < len; i++)
        found |= check_pattern_next(pattern, &set, (uint8_t)data[i]);
    return found;
}

GROUP(pattern, setup, teardown);

static const struct {
    const char *text, *data;
    bool is_in;
} cases[] = {
    {"PONG", "+PONG\r\n", true},
    {"PONG", "+PON", false},
    {"aab", "aaab", true},
    {"a.c", "abc", true},
    {"a.c", "a\nc", false},
    {"^HTTP/1\\.[01] 2[0-9][0-9]", "HTTP/1.1 204 No Content\r\n", true},
    {"^HTTP/1\\.[01] 2[0-9][0-9]", "HTTP/1.1 304 Not Modified\r\n", false},
    {"^HTTP/1\\.[01] 2", "x HTTP/1.1 200", false},
    {"^250 ", "220 hello\r\n250 ok\r\n", true},
    {"^250 ", "1250 ok\r\n", false},
    {"ok$", "ok\r\n", true},
    {"ok$", "okay\r\n", false},
    {"(^|x)a", "a", true},
    {"(^|x)a", "ba", false},
    {"(^|x)a", "bxa", true},
    {"(ab|cd)+e", "abcdabe", true},
    {"(ab|cd)+e", "abde", false},
    {"^(ab)*c", "ababc", true},
    {"^(ab)*c", "c", true},
    {"^(ab)*c", "abac", false},
    {"^a{2}b", "aab", true},
    {"^a{2}b", "aaab", false},
    {"^a{2,3}b", "aaab", true},
    {"^a{2,3}b", "aaaab", false},
    {"^a{2,}b", "aaaaaab", true},
    {"^a{2,}b", "ab", false},
    {"^a{0,2}b", "b", true},
    {"^a{0,2}b", "aaab", false},
    {"^a{0,}b", "aaab", true},
    {"^(a|bc){2}d", "bcad", true},
    {"^(a|bc){2}d", "bcd", false},
    {"^a?b", "b", true},
    {"^a?b", "aab", false},
    {"[[:digit:]]{3}", "ab123", true},
    {"[^[:digit:]]", "123", false},
    {"[]x]", "]", true},
    {"[^]]", "]", false},
    {"[a-c-]", "-", true},
    {"[\\x00-\\x1f]", "\x05", true},
    {"\\d+\\s\\w", "12 _", true},
    {"a\\.b", "axb", false},
    {"\\x41\\r\\n", "A\r\n", true},
    {"(?:a|b)c", "bc", true},
    {"role:master|ready_to_serve:1", "ready_to_serve:1", true},
};

TEST_EACH(pattern, expression_matches_as_it_says, ARRAY_LEN(cases))
{
    ck_assert_msg(is_in(cases[_i].text, cases[_i].data, strlen(cases[_i].data)) == cases[_i].is_in,
                  "%s in %s", cases[_i].text, cases[_i].data);
}

TEST(pattern, bytes_of_any_value_are_read)
{
    ck_assert(is_in("^R\\x00{3}.\\x00", "R\0\0\0\x08\0", 6));
    ck_assert(is_in("^[\\x00-\\xff]{3}\\x00\\x0a", "\n\xff\0\0\x0a", 5));
    ck_assert(is_in("\\0\\xff", "\0\xff", 2));
}

TEST(pattern, line_start_is_that_of_the_caller_or_behind_a_newline)
{
    struct check_pattern_set set;
    const char *problem;

    ck_assert_int_eq(check_pattern_compile(&pattern, arena, "^a", &problem), 0);
    check_pattern_begin(pattern, &set, false);
    ck_assert(!check_pattern_is_begun(&set));
    ck_assert(!check_pattern_next(pattern, &set, 'a'));
    ck_assert(!check_pattern_next(pattern, &set, '\n'));
    ck_assert(check_pattern_is_begun(&set));
    ck_assert(check_pattern_next(pattern, &set, 'a'));
}

static const struct {
    const char *text, *problem;
} broken[] = {
    {"", "an empty expression, group or alternative"},
    {"a|", "an empty expression, group or alternative"},
    {"()", "an empty expression, group or alternative"},
    {"(a", "'(' without ')'"},
    {"a)", "')' without '('"},
    {"[a", "'[' without ']'"},
    {"[]", "'[' without ']'"},
    {"[c-a]", "a range in brackets is not from low to high"},
    {"[[:digits:]]", "unknown class in brackets (as in [[:digit:]])"},
    {"*a", "nothing to repeat (a backslash makes it a character)"},
    {"a**", "two repetitions in a row"},
    {"a{2}{3}", "two repetitions in a row"},
    {"a{", "repetitions are {N}, {N,} and {N,M}, of 1 to 255"},
    {"a{,2}", "repetitions are {N}, {N,} and {N,M}, of 1 to 255"},
    {"a{3,2}", "repetitions are {N}, {N,} and {N,M}, of 1 to 255"},
    {"a{0}", "repetitions are {N}, {N,} and {N,M}, of 1 to 255"},
    {"a{256}", "repetitions are {N}, {N,} and {N,M}, of 1 to 255"},
    {"a{99999999999}", "repetitions are {N}, {N,} and {N,M}, of 1 to 255"},
    {"a\\", "a backslash at the end"},
    {"(a)\\1", "there are no back-references"},
    {"\\y", "unknown escape (\\d, \\w, \\s, \\r, \\n, \\t, \\0 and \\xNN are known)"},
    {"a^b", "'^' is not at a start (a backslash makes it a character)"},
    {"a$b", "'$' is not at an end (a backslash makes it a character)"},
    {"a*", "every answer matches, even an empty one"},
    {"^", "every answer matches, even an empty one"},
    {"((a{255}){255}){255}", "the expression is too long with its repetitions written out"},
    {"(a{0,255}){0,255}", "the expression is too long with its repetitions written out"},
    {"((((((((((((((((((a))))))))))))))))))", "groups are nested too deeply"},
};

TEST_EACH(pattern, broken_expression_is_refused_with_its_problem, ARRAY_LEN(broken))
{
    const char *problem = NULL;

    ck_assert_int_eq(check_pattern_compile(&pattern, arena, broken[_i].text, &problem), -EINVAL);
    ck_assert_str_eq(problem, broken[_i].problem);
}

/* With backtracking this would take years. */
TEST(pattern, expression_that_is_hard_for_others_takes_the_time_of_its_bytes)
{
    static char data[64 * 1024];

    memset(data, 'a', sizeof(data));
    ck_assert(!is_in("(a|aa|a.){40}(a*a*a*b|c)", data, sizeof(data)));
    ck_assert(!is_in("^(a?){100}(a+)+b", data, sizeof(data)));
}
