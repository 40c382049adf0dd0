/* tls/server_name: which texts are host names, and which names a wildcard matches. */
#include <errno.h>
#include <string.h>

#include "support/suite.h"
#include "tls/server_name.h"

static const struct {
    const char *text, *name; /* NULL: no host name */
} names[] = {
    {"a", "a"},
    {"A.Example", "a.example"},
    {"a.example.", "a.example"},
    {"_srv.x-1.example", "_srv.x-1.example"},
    {"192.0.2.1", "192.0.2.1"},
    {"xn--bcher-kva.example", "xn--bcher-kva.example"},
    {"", NULL},
    {".", NULL},
    {"a..example", NULL},
    {".example", NULL},
    {"a.example..", NULL},
    {"a b", NULL},
    {"a/b", NULL},
    {"[::1]", NULL},
    {"::1", NULL},
    {"b\xc3\xbc"
     "cher",
     NULL},
    {"*.example", NULL},
    {"a@", NULL},
    {"a`", NULL},
    {"a{", NULL},
    {"a:1", NULL},
};

GROUP(reading, NULL, NULL);

TEST_EACH(reading, a_host_name_is_written_in_lower_case, ARRAY_LEN(names))
{
    char out[SERVER_NAME_BYTES];
    int rc = server_name_read(out, names[_i].text, strlen(names[_i].text));

    ck_assert_int_eq(rc, names[_i].name ? 0 : -EINVAL);
    if (names[_i].name)
        ck_assert_str_eq(out, names[_i].name);
}

TEST(reading, embedded_nul_is_refused)
{
    char out[SERVER_NAME_BYTES];

    ck_assert_int_eq(server_name_read(out, "a\0b", 3), -EINVAL);
}

TEST(reading, labels_and_names_have_a_maximum_length)
{
    char text[SERVER_NAME_BYTES + 2], out[SERVER_NAME_BYTES];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 64 == 63 ? '.' : 'a';
    ck_assert_int_eq(server_name_read(out, text, 63), 0);
    ck_assert_int_eq(server_name_read(out, text, 253), 0);
    ck_assert_int_eq(server_name_read(out, text, 254), -EINVAL);
    text[253] = '.'; /* a final dot does not count */
    ck_assert_int_eq(server_name_read(out, text, 254), 0);
    ck_assert_uint_eq(strlen(out), 253);
    text[63] = 'a';
    ck_assert_int_eq(server_name_read(out, text, 64), -EINVAL);
}

TEST(reading, wildcard_is_allowed_as_the_whole_first_label_only)
{
    char out[SERVER_NAME_BYTES];
    static const char *const bad[] = {"*",           "*.",          "*a.example",
                                      "a.*.example", "*.*.example", "**.a"};

    ck_assert_int_eq(server_name_read_pattern(out, "*.A.example", 11), 0);
    ck_assert_str_eq(out, "*.a.example");
    ck_assert(server_name_is_wildcard(out));
    ck_assert_int_eq(server_name_read_pattern(out, "A.example", 9), 0);
    ck_assert_str_eq(out, "a.example");
    ck_assert(!server_name_is_wildcard(out));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_int_eq(server_name_read_pattern(out, bad[i], strlen(bad[i])), -EINVAL);
}

TEST(reading, pattern_of_maximum_length_fits)
{
    char text[SERVER_NAME_BYTES + 2], out[SERVER_NAME_BYTES];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 64 == 1 ? '.' : 'a';
    text[0] = '*';
    ck_assert_int_eq(server_name_read_pattern(out, text, 253), 0);
    ck_assert_uint_eq(strlen(out), 253);
    ck_assert_int_eq(server_name_read_pattern(out, text, 254), -EINVAL);
}

GROUP(matching, NULL, NULL);

TEST(matching, wildcard_matches_exactly_one_label)
{
    ck_assert(server_name_matches("a.example", "a.example"));
    ck_assert(!server_name_matches("a.example", "b.a.example"));
    ck_assert(!server_name_matches("a.example", "a.example2"));
    ck_assert(server_name_matches("*.a.example", "b.a.example"));
    ck_assert(!server_name_matches("*.a.example", "a.example"));
    ck_assert(!server_name_matches("*.a.example", "c.b.a.example"));
    ck_assert(!server_name_matches("*.a.example", "b.aa.example"));
    ck_assert(!server_name_matches("*.a", "a"));
}
