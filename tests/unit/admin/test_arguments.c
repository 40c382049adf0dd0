/* admin/arguments: the fields of a query and of a body, and what is none. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/arguments.h"
#include "base/must.h"
#include "support/suite.h"

static struct arguments_problem problem;

/* The object as a text with sorted keys. */
static void expect(json_t *fields, const char *wanted)
{
    char *text = json_dumps(fields, JSON_COMPACT | JSON_SORT_KEYS);

    ck_assert_str_eq(text, wanted);
    free(text);
    json_decref(fields);
}

static const struct {
    const char *query, *fields;
} queries[] = {
    {"", "{}"},
    {"a=1", "{\"a\":\"1\"}"},
    {"a=", "{\"a\":\"\"}"},
    {"a=1&b=2", "{\"a\":\"1\",\"b\":\"2\"}"},
    {"a=b=c", "{\"a\":\"b=c\"}"},
    {"client=10.0.0.0%2F8", "{\"client\":\"10.0.0.0/8\"}"},
    {"a=x+y%20z", "{\"a\":\"x y z\"}"},
    {"%61=%41%7e", "{\"a\":\"A~\"}"},
    {"a=%c3%A4", "{\"a\":\"\xc3\xa4\"}"},
    {"a=%26%3d%25", "{\"a\":\"&=%\"}"},
};

GROUP(query, NULL, NULL);

TEST_EACH(query, query_fields_are_decoded, ARRAY_LEN(queries))
{
    json_t *fields;

    ck_assert_int_eq(arguments_parse_query(&fields, queries[_i].query, &problem), 0);
    expect(fields, queries[_i].fields);
}

static const struct {
    const char *query, *problem;
} bad_queries[] = {
    {"a", "'a' in the query is not NAME=VALUE"},
    {"=1", "'=1' in the query is not NAME=VALUE"},
    {"&", "'' in the query is not NAME=VALUE"},
    {"a=1&", "'' in the query is not NAME=VALUE"},
    {"a=1&&b=2", "'' in the query is not NAME=VALUE"},
    {"a=%", "'a' in the query has a broken escape"},
    {"a=%4", "'a' in the query has a broken escape"},
    {"a=%4g", "'a' in the query has a broken escape"},
    {"a=%00", "'a' in the query has a broken escape"},
    {"%00=a", "'%00' in the query has a broken escape"},
    {"a=%ff", "'a' in the query is not UTF-8"},
    {"%ff=a", "'?' in the query is not UTF-8"},
    {"a=\xc3", "'a' in the query is not UTF-8"},
    {"a=1&a=1", "'a' is given twice"},
    {"a=1&%61=2", "'a' is given twice"},
    {"%0a=1&%0a=1", "'?' is given twice"},
};

TEST_EACH(query, malformed_query_is_refused_with_the_field, ARRAY_LEN(bad_queries))
{
    json_t *fields;

    ck_assert_int_eq(arguments_parse_query(&fields, bad_queries[_i].query, &problem), -EINVAL);
    ck_assert_str_eq(problem.text, bad_queries[_i].problem);
}

static const struct {
    const char *body, *fields;
} bodies[] = {
    {"", "{}"},
    {"{}", "{}"},
    {" {\"a\" : 1}\r\n", "{\"a\":1}"},
    {"{\"a\":true,\"b\":\"x\"}", "{\"a\":true,\"b\":\"x\"}"},
};

GROUP(body, NULL, NULL);

TEST_EACH(body, json_object_is_accepted, ARRAY_LEN(bodies))
{
    json_t *fields;

    ck_assert_int_eq(
        arguments_parse_body(&fields, bodies[_i].body, strlen(bodies[_i].body), &problem), 0);
    expect(fields, bodies[_i].fields);
}

static const struct {
    const char *body;
    size_t len;
    const char *problem;
} bad_bodies[] = {
    {" ", 1, "the body is not JSON: line 1, column 1: "},
    {"{", 1, "the body is not JSON: line 1"},
    {"{}x", 3, "the body is not JSON: line 1"},
    {"{\n\"a\":}", 7, "the body is not JSON: line 2"},
    {"{\"a\":1,\"a\":2}", 13, "the body is not JSON: line 1, column 10: duplicate object key"},
    {"{\"a\":\"\\u0000\"}", 14, "the body is not JSON: line 1"},
    {"{}\0", 3, "the body is not JSON: line 1"},
    {"{\"a\":99999999999999999999}", 26, "the body is not JSON: line 1, column 25: too big"},
    {"\xff\xff", 2, "the body is not JSON: line 1"},
    {"[]", 2, "the body is not a JSON object"},
    {"null", 4, "the body is not a JSON object"},
    {"\"a\"", 3, "the body is not a JSON object"},
};

TEST_EACH(body, body_that_is_no_object_is_refused_with_its_place, ARRAY_LEN(bad_bodies))
{
    json_t *fields;

    ck_assert_int_eq(
        arguments_parse_body(&fields, bad_bodies[_i].body, bad_bodies[_i].len, &problem), -EINVAL);
    ck_assert_msg(strstr(problem.text, bad_bodies[_i].problem) == problem.text, "%s", problem.text);
}

TEST(body, body_of_open_brackets_is_refused)
{
    size_t len = 64 * 1024;
    char *text = malloc(len);
    json_t *fields;

    memset(text, '[', len);
    ck_assert_int_eq(arguments_parse_body(&fields, text, len, &problem), -EINVAL);
    for (size_t i = 0; i + 4 < len; i += 5)
        memcpy(text + i, "{\"a\":", 5);
    ck_assert_int_eq(arguments_parse_body(&fields, text, len, &problem), -EINVAL);
    free(text);
}

GROUP(names, NULL, NULL);

static int check_names(const char *body, const char *const *names)
{
    json_t *fields;
    int rc;

    ck_assert_int_eq(arguments_parse_body(&fields, body, strlen(body), &problem), 0);
    rc = arguments_check_names(fields, names, &problem);
    json_decref(fields);
    return rc;
}

TEST(names, listed_names_are_accepted)
{
    static const char *const two[] = {"a", "b", NULL};

    ck_assert_int_eq(check_names("{}", NULL), 0);
    ck_assert_int_eq(check_names("{}", two), 0);
    ck_assert_int_eq(check_names("{\"b\":1,\"a\":1}", two), 0);
}

TEST(names, unlisted_name_is_refused_with_the_list)
{
    static const char *const two[] = {"a", "b", NULL};

    ck_assert_int_eq(check_names("{\"a\":1,\"c\":1}", two), -EINVAL);
    ck_assert_str_eq(problem.text, "'c' is not a field here (a, b)");
    ck_assert_int_eq(check_names("{\"\":1}", NULL), -EINVAL);
    ck_assert_str_eq(problem.text, "'' is not a field here (none)");
    ck_assert_int_eq(check_names("{\"\\u001b\\n\":1}", NULL), -EINVAL);
    ck_assert_str_eq(problem.text, "'?"
                                   "?' is not a field here (none)");
}

TEST(names, long_lists_and_names_are_truncated)
{
    static const char *const many[] = {
        "a_name_of_thirty_letters_or_so",  "another_of_thirty_letters_or_so",
        "a_third_of_thirty_letters_or_so", "a_fourth_of_thirty_letters_or_so",
        "a_fifth_of_thirty_letters_or_so", NULL};
    char body[512];

    snprintf(body, sizeof(body), "{\"%0200d\":1}", 0);
    ck_assert_int_eq(check_names(body, many), -EINVAL);
    ck_assert_uint_lt(strlen(problem.text), sizeof(problem.text));
    ck_assert_ptr_nonnull(strstr(problem.text, "a_third_of"));
}
