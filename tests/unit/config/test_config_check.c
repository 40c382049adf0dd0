/* config/config_check: every problem of a file is told, once and by its line. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "option/option.h"
#include "support/config_file.h"
#include "support/names.h"
#include "support/suite.h"
#include "support/text_file.h"

#define ECHO    "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
#define PROXY   "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n"
#define SERVER  "[upstream u]\nserver.a = 127.0.0.1:9\n"
#define POINTER "t.ini:0: for lines of HAProxy or nginx see reactord-migrating(7)\n"

GROUP(files, text_file_enter, config_file_leave);

/* Files with one foreign word, of each kind that is known. */
static const char *const foreign[] = {
    ECHO "[backend b]\n",
    ECHO "nbthread = 2\n",
    ECHO "option tcplog\n",
    ECHO "timeout client = 5s\n",
    ECHO SERVER "balance = leastconn\n",
    ECHO "[upstream u]\nserver.a = @x maxconn=5\n",
    ECHO "some_directive on;\n",
    "global\n" ECHO,
};

TEST_EACH(files, file_with_lines_of_other_programs_points_to_the_migration_page, ARRAY_LEN(foreign))
{
    ck_assert_int_eq(config_file_load_text(foreign[_i]), -EINVAL);
    ck_assert_msg(strstr(config_file.problems, "\n" POINTER), "%s", config_file.problems);
}

TEST(files, file_without_lines_of_other_programs_points_to_no_page)
{
    ck_assert_int_eq(config_file_load_text(ECHO "word\n[boss]\nacept_batch = 2\n"), -EINVAL);
    ck_assert_msg(!strstr(config_file.problems, "migrating"), "%s", config_file.problems);
}

TEST(files, each_wrong_word_of_a_server_line_is_reported)
{
    ck_assert_int_eq(
        config_file_load_text(PROXY "[upstream u]\nserver.a = 127.0.0.1:99999 check port 8008 "
                                    "maxconn 100 bakup weight=300 inter 2s backup\n"),
        -EINVAL);
#define AT "t.ini:6: [upstream u] server.a: "
    ck_assert_ptr_eq(strstr(config_file.problems, AT
                            "'check' is not known; here it is 'check = tcp in the section'\n" AT
                            "'port' is not known; here it is 'check_port=N'\n" AT
                            "'maxconn' is not known; here it is 'max_connections=N'\n" AT
                            "'bakup' is not known\n" AT "'300' is not a weight from 0 to 256\n" AT
                            "'inter' is not known; here it is 'check_interval=2s'\n" AT
                            "the port of '127.0.0.1:99999' is not 1 to 65535 (ADDRESS [weight"),
                     config_file.problems);
}

TEST(files, wrong_words_beyond_the_maximum_are_counted)
{
    char text[2048] = PROXY "[upstream u]\nserver.a = @x";

    for (int i = 0; i < 200; i++)
        strcat(text, " x\xff");
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_ptr_nonnull(strstr(config_file.problems, "server.a: 'x\\xff' is not known\n"));
    ck_assert_ptr_nonnull(strstr(config_file.problems, " more problems (ADDRESS "));
}

/* 0: [listen]; 1: [upstream]. */
TEST_EACH(files, list_of_allowed_words_is_complete, 2)
{
    enum option_section section = _i == 0 ? OPTION_LISTEN : OPTION_UPSTREAM;
    const struct option *o;
    const char *at;

    ck_assert_int_eq(
        config_file_load_text(_i == 0 ? ECHO "qqqqqqqq = 1\n" : ECHO SERVER "qqqqqqqq = 1\n"),
        -EINVAL);
    at = strstr(config_file.problems, "unknown option (");
    ck_assert_ptr_nonnull(at);
    at += strlen("unknown option (");
    for (unsigned i = 0; (o = option_row(section, i)) != NULL; i++) {
        size_t len = strlen(o->key);

        ck_assert_msg(strncmp(at, o->key, len) == 0, "%s: %s", o->key, at);
        at += len;
        ck_assert_int_eq(strncmp(at, option_row(section, i + 1) ? ", " : ")\n", 2), 0);
        at += 2;
    }
    ck_assert_str_eq(at, "");
}

TEST(files, upstream_whose_servers_get_no_connections_is_valid_with_a_warning)
{
    ck_assert_int_eq(config_file_load_text(
                         PROXY "[upstream u]\nserver.a = @a weight=0\nserver.b = @b disabled\n"),
                     0);
    ck_assert_str_eq(
        config_file.problems,
        "t.ini:5: warning: [upstream u] no server gets connections: all are disabled or "
        "have weight=0; clients are reset\n");
}

TEST(files, upstream_with_one_weighted_server_is_valid_without_a_warning)
{
    ck_assert_int_eq(
        config_file_load_text(PROXY "[upstream u]\nserver.a = @a weight=0\nserver.b = @b backup\n"),
        0);
    ck_assert_str_eq(config_file.problems, "");
}

/* The hard limit of open files is lowered: in a process of its own, for good. */
TEST(files, max_connections_above_the_limit_of_open_files_is_warned_of)
{
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(config_file_load_text("[reactord]\nmax_connections = 900\n"
                                           "[boss]\nthreads = 1\n[worker]\nthreads = 2\n" PROXY
                                           "max_connections = 300\n" SERVER),
                     0);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:2: warning: [reactord] max_connections: cannot be reached: needs 1844 "
                     "open files, the limit is 1000 (ulimit -Hn; LimitNOFILE=)\n");
    ck_assert_int_eq(config_file_load_text(ECHO "max_connections = 990\n[listen b]\naddress = @b\n"
                                                "service = echo\nmax_connections = 900\n"),
                     0);
    ck_assert_msg(strncmp(config_file.problems, "t.ini:4: warning: [listen ", 26) == 0 &&
                      !strchr(config_file.problems, '\n')[1],
                  "%s", config_file.problems);
}

TEST(files, unreadable_file_is_reported)
{
    config_file_load("/");
    ck_assert_int_eq(config_file.rc, -EISDIR);
    ck_assert_str_eq(config_file.problems, "/:0: is a directory (a file is needed)\n");
    config_file_load("nosuch.ini");
    ck_assert_int_eq(config_file.rc, -ENOENT);
    ck_assert_str_eq(config_file.problems,
                     "nosuch.ini:0: cannot be opened: No such file or directory\n");
}

TEST(files, all_problems_of_a_file_are_reported_in_its_order)
{
    ck_assert_int_eq(config_file_load_text("[listen a]\n"
                                           "address = 127.0.0.1:7, nowhere\n"
                                           "service = proxy\n"
                                           "word\n"
                                           "upstream = none\n"
                                           "[boss]\n"
                                           "threads = 65\n"
                                           "acept_batch = 1\n"
                                           "threads = 1\n"
                                           "[listen b]\n"
                                           "service = echo\n"
                                           "[worker] # here\n"
                                           "[listen b]\n"
                                           "[upstream u]\n"
                                           "retries = 1#\n"),
                     -EINVAL);
    ck_assert_str_eq(
        config_file.problems,
        "t.ini:2: [listen a] address: 'nowhere' is not an address (127.0.0.1:7, [::1]:7, *:7, *:7000-7010, "
        "/run/x.sock or @name, comma-separated)\n"
        "t.ini:4: 'word': no '=' (key = value)\n"
        "t.ini:5: [listen a] upstream: there is no [upstream none] (the NAME of an [upstream "
        "NAME])\n"
        "t.ini:7: [boss] threads: '65' is out of range (0 to 64)\n"
        "t.ini:8: [boss] acept_batch: unknown option (did you mean 'accept_batch'?)\n"
        "t.ini:9: [boss] threads: is set twice (first on line 7)\n"
        "t.ini:10: [listen b] address: is missing: addresses to listen on (127.0.0.1:7, [::1]:7, "
        "*:7, *:7000-7010, /run/x.sock or @name, comma-separated)\n"
        "t.ini:12: '# here' follows the closing ']' (nothing may, not even a comment)\n"
        "t.ini:13: [listen b] is defined twice (first on line 10)\n"
        "t.ini:14: [upstream u] server.ID: is missing: a server, or a name that stands for "
        "one or more servers; any number, each with its own ID (ADDRESS [weight=0..256] [max_connections=1..1000000] "
        "[resolve=each|one] [check=off] [check_address=IP] [check_port=1..65535] "
        "[check_interval=10ms..1h] [rise=1..1000] [fall=1..1000] [agent_check=off|PORT|IP:PORT] [eject=off] "
        "[send_proxy=off|v1|v2] [backup] [disabled])\n"
        "t.ini:15: [upstream u] retries: a '#' or ';' inside the value (put a blank before a "
        "comment, or quote the value)\n");
}

TEST(files, loop_over_several_proxies_is_reported_at_each_of_its_servers)
{
    ck_assert_int_eq(config_file_load_text(
                         "[listen a]\naddress = 127.0.0.1:1\nservice = proxy\nupstream = to_b\n"
                         "[listen b]\naddress = 127.0.0.1:2\nservice = proxy\nupstream = to_a\n"
                         "[listen c]\naddress = 127.0.0.1:3\nservice = proxy\nupstream = to_c\n"
                         "[upstream to_b]\nserver.x = @x\nserver.b = 127.0.0.1:2\n"
                         "[upstream to_a]\nserver.a = 127.0.0.1:1\n"
                         "[upstream to_c]\nserver.a = 127.0.0.1:1\n"),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(config_file.problems,
                                 "t.ini:15: [upstream to_b] server.b: '127.0.0.1:2' is "
                                 "where [listen b] listens"));
    ck_assert_ptr_nonnull(strstr(config_file.problems, "\nt.ini:17: [upstream to_a] server.a: "));
    ck_assert_ptr_null(strstr(config_file.problems, "to_c"));
}

TEST(files, proxy_to_an_echo_listener_of_our_own_is_no_loop)
{
    ck_assert_int_eq(config_file_load_text(ECHO PROXY "[upstream u]\nserver.a = 127.0.0.1:7\n"), 0);
    ck_assert_int_eq(
        config_file_load_text("[listen a]\naddress = @a\nservice = proxy\nupstream = to_b\n"
                              "[listen b]\naddress = @b\nservice = proxy\nupstream = u\n"
                              "[upstream to_b]\nserver.b = @b\n" SERVER),
        0);
}

TEST(files, host_name_is_accepted_without_a_lookup)
{
    ck_assert_int_eq(config_file_load_text(
                         PROXY "[upstream u]\nserver.a = p.example.com:8\nserver.b = b:9 backup\n"
                               "server.c = localhost:9\n"),
                     0);
    ck_assert_uint_eq(names_asked(), 0);
}
