/* ctl/ctl_address: which addresses are understood. */
#include <errno.h>
#include <string.h>

#include "ctl/ctl_address.h"
#include "support/suite.h"

static struct ctl_address address;
static char problem[128];

GROUP(addresses, NULL, NULL);

static const struct {
    const char *text, *url, *path;
} good[] = {
    {"/run/x.sock", "http://localhost", "/run/x.sock"},
    {"127.0.0.1:80", "http://127.0.0.1:80", NULL},
    {"localhost:65535", "http://localhost:65535", NULL},
    {"[::1]:9000", "http://[::1]:9000", NULL},
    {"a-b.example:1", "http://a-b.example:1", NULL},
};

TEST_EACH(addresses, paths_hosts_and_ipv6_in_brackets_are_understood, ARRAY_LEN(good))
{
    ck_assert_int_eq(ctl_address_parse(&address, good[_i].text, problem, sizeof(problem)), 0);
    ck_assert_str_eq(address.url, good[_i].url);
    ck_assert_pstr_eq(address.path, good[_i].path);
    ck_assert_str_eq(address.text, good[_i].text);
}

static const char *const bad[] = {
    "",        "x",           "run/x.sock", ":80",      "host:",   "host:0", "host:65536",
    "host:8o", "::1:80",      "[::1]",      "[::1:80",  "[]:80",   "[x]:80", "::1]:80",
    "a b:80",  "a/b:80",      "u@host:80",  "a?b:80",   "a#b:80",  "h:80/x", "[::1]x:80",
    "%61:80",  "[::1%lo]:80", "host: 80",   "host:+80", "a\nb:80", "@x",     "[1.2.3.4]:80",
};

TEST_EACH(addresses, malformed_address_is_refused_with_a_reason, ARRAY_LEN(bad))
{
    problem[0] = '\0';
    ck_assert_int_eq(ctl_address_parse(&address, bad[_i], problem, sizeof(problem)), -EINVAL);
    ck_assert_str_ne(problem, "");
}

TEST(addresses, a_host_may_have_253_characters_and_a_path_107)
{
    char text[300];

    memset(text, 'a', sizeof(text));
    strcpy(text + 253, ":80");
    ck_assert_int_eq(ctl_address_parse(&address, text, problem, sizeof(problem)), 0);
    ck_assert_str_eq(address.url + strlen("http://"), text);
    memset(text, 'a', sizeof(text));
    strcpy(text + 254, ":80");
    ck_assert_int_eq(ctl_address_parse(&address, text, problem, sizeof(problem)), -EINVAL);
    text[0] = '/';
    text[107] = '\0';
    ck_assert_int_eq(ctl_address_parse(&address, text, problem, sizeof(problem)), 0);
    strcpy(text + 107, "a");
    ck_assert_int_eq(ctl_address_parse(&address, text, problem, sizeof(problem)), -EINVAL);
}
