/* option/option_check: what checks send and expect, to the byte; wrong values have their line. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_http.h"
#include "config/config.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "upstream/upstream.h"

#define PROXY  "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n"
#define SERVER "[upstream u]\nserver.a = 127.0.0.1:9\n"
#define HTTP   PROXY SERVER "check = http\n"
#define AT8    "t.ini:8: [upstream u] check_http"

GROUP(checks, text_file_enter, config_file_leave);

/* Values of HTTP checks that are wrong, and how the problem begins. */
static const struct {
    const char *text, *problem;
} broken_http[] = {
    {"check_http = get /\n", AT8 ": 'get' is not a method in capital letters (a method and"},
    {"check_http = GET\n", AT8 ": no path follows the method (a method and"},
    {"check_http = GET healthz\n", AT8 ": 'healthz' is not a path such as /healthz (a"},
    {"check_http = GET /\xc3\xa9\n", AT8 ": '/\\xc3\\xa9' is not a path such as /healthz (a"},
    {"check_http = GET / HTTP/2\n", AT8 ": 'HTTP/2' is neither HTTP/1.0 nor HTTP/1.1 (a"},
    {"check_http = GET / HTTP/1.1 x\n", AT8 ": more than a method, a path and a version (a"},
    {"check_expect = ok\ncheck_http = HEAD /live\n",
     "t.ini:8: [upstream u] check_expect: a HEAD request has no body to search (check_http = GET "
     "/live, or no check_expect)\n"},
    {"check_http_host = a b\n", AT8 "_host: 'a b' is not a host (a host name or address,"},
    {"check_http_host = http://a\n", AT8 "_host: 'http://a' is not a host (a host name"},
    {"check_http_header.host = a\n", AT8 "_header.host: the host is check_http_host (text"},
    {"check_http_header.connection = a\n", AT8 "_header.connection: it is always 'close' (text"},
    {"check_http_header.content-length = 5\n",
     AT8 "_header.content-length: a request of a check has no body (text"},
    {"check_http_header. = 5\n", AT8 "_header.: no name of a header follows the dot (text"},
    {"check_http_status = 20\n", AT8 "_status: '20' is not a code or range from 100 to 999 (codes"},
    {"check_http_status = 2000\n", AT8 "_status: '2000' is not a code or range from 100 to 999"},
    {"check_http_status = 099\n", AT8 "_status: '099' is not a code or range from 100 to 999"},
    {"check_http_status = 299-200\n", AT8 "_status: '299-200' is not a code or range from 100"},
    {"check_http_status = 200,,\n", AT8 "_status: '' is not a code or range from 100 to 999 ("},
    {"check_http_status = 200,201,202,203,204,205,206,207,208,209,210,211,212,213,214,215,216\n",
     AT8 "_status: there are more than 16 codes and ranges (codes and ranges such as"},
};

TEST_EACH(checks, wrong_value_of_http_has_its_line, ARRAY_LEN(broken_http))
{
    char text[1024];

    snprintf(text, sizeof(text), "%s%s", HTTP, broken_http[_i].text);
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, broken_http[_i].problem,
                          strlen(broken_http[_i].problem)) == 0,
                  "%s", config_file.problems);
}

/* The lines of ${n} headers of ${len} bytes each behind ${text}. */
static void add_headers(char *text, size_t size, unsigned n, unsigned len)
{
    for (unsigned i = 0; i < n; i++) {
        size_t used = strlen(text);

        snprintf(text + used, size - used, "check_http_header.h%u = %0*u\n", i, (int)len, i);
    }
}

TEST(checks, too_many_headers_of_http_or_too_long_are_refused_at_their_line)
{
    char text[8192] = HTTP;

    add_headers(text, sizeof(text), 17, 5);
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_ptr_eq(strstr(config_file.problems,
                            "t.ini:24: [upstream u] check_http_header.h16: there are more than 16"),
                     config_file.problems);
    strcpy(text, HTTP);
    add_headers(text, sizeof(text), 5, 900);
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_ptr_eq(strstr(config_file.problems, "t.ini:12: [upstream u] check_http_header.h4: "
                                                  "with it the request has 4"),
                     config_file.problems);
}

TEST(checks, options_of_http_make_its_request)
{
    const struct check_http_conf *http;

    ck_assert_int_eq(config_file_load_text(HTTP "check_http = /live?a=b HTTP/1.0\n"
                                                "check_http_host = a.example:80\n"
                                                "check_http_header.x-probe = yes, it is\n"
                                                "check_http_status = 200, 300-399\n"),
                     0);
    http = &config_file.config->server.upstreams[0].checks.check.http;
    ck_assert_str_eq(http->method, "GET");
    ck_assert_str_eq(http->target, "/live?a=b");
    ck_assert_uint_eq(http->minor, 0);
    ck_assert_str_eq(http->host, "a.example:80");
    ck_assert_uint_eq(http->n_headers, 1);
    ck_assert_str_eq(http->headers[0].name, "x-probe");
    ck_assert_str_eq(http->headers[0].value, "yes, it is");
    ck_assert(check_http_wants(http, 200) && check_http_wants(http, 399));
    ck_assert(!check_http_wants(http, 201) && !check_http_wants(http, 400));
}

#define STEPS PROXY SERVER "check = steps\n"
#define STEP  "t.ini:8: [upstream u] check_step.1: "

/* Steps that are wrong, and how the problem begins. */
static const struct {
    const char *text, *problem;
} broken_steps[] = {
    {"", "t.ini:7: [upstream u] check: there are no steps (set check_step.1)"},
    {"check_step.x = send a\n",
     "t.ini:8: [upstream u] check_step.x: the ID is not a number from 1 to 999 ("},
    {"check_step.0 = send a\n",
     "t.ini:8: [upstream u] check_step.0: the ID is not a number from 1 to 999 ("},
    {"check_step.1000 = send a\n",
     "t.ini:8: [upstream u] check_step.1000: the ID is not a number from 1 to 999 ("},
    {"check_step.1 = send a\ncheck_step.01 = send b\n",
     "t.ini:9: [upstream u] check_step.01: the ID is not a number from 1 to 999 ("},
    {"check_step.1 = say a\n", STEP "it begins with no 'connect', 'send' or 'expect' ("},
    {"check_step.1 = sendx\n", STEP "it begins with no 'connect', 'send' or 'expect' ("},
    {"check_step.1 = send\n", STEP "no text follows ("},
    {"check_step.1 = expect\n", STEP "no text follows ("},
    {"check_step.1 = expect string a\n",
     STEP "'string' is a word of HAProxy; here it is 'expect TEXT' ("},
    {"check_step.1 = expect ! rstring ^a\n",
     STEP "'rstring' is a word of HAProxy; here it is 'expect ~REGEX' ("},
    {"check_step.1 = expect binary 50\n",
     STEP "'binary' is a word of HAProxy; here it is 'expect TEXT', with bytes as '\\xNN' ("},
    {"check_step.1 = expect !\n", STEP "no text follows ("},
    {"check_step.1 = send \\q\n", STEP "'\\q' is no escape ("},
    {"check_step.1 = expect ~\n", STEP "'': an empty expression, group or alternative ("},
    {"check_step.1 = expect ~(a)\\1\n", STEP "'(a)\\1': there are no back-references ("},
    {"check_step.1 = expect ~(a{255}){255}\n", STEP "'(a{255}){255}': the expression is too long"},
    {"check_step.1 = expect !~[\n", STEP "'[': '[' without ']' ("},
    {"check_step.1 = connect 80\n", STEP "'80' is not known ("},
    {"check_step.1 = connect port\n", STEP "no number follows 'port' ("},
    {"check_step.1 = connect port 65536\n", STEP "'65536' is not a port from 1 to 65535 ("},
    {"check_step.1 = connect port 0\n", STEP "'0' is not a port from 1 to 65535 ("},
    {"check_step.1 = connect tls\n", STEP "tls needs the settings of a [tls NAME] (set check_tls)"},
    {"check_step.1 = expect !a\n", STEP "an 'expect !' holds until another expect, which must"},
    {"check_step.1 = expect !a\ncheck_step.2 = send b\ncheck_step.3 = expect c\n",
     STEP "an 'expect !' holds until another expect, which must"},
    {"server.b = /run/x\ncheck_step.1 = send b\ncheck_step.9 = connect port 1\n",
     "t.ini:10: [upstream u] check_step.9: a server is a unix socket, which has no port ("},
    {"check_step.1 = expect !1\ncheck_step.2 = expect !2\ncheck_step.3 = expect !3\n"
     "check_step.4 = expect !4\ncheck_step.5 = expect !5\ncheck_step.6 = expect !6\n"
     "check_step.7 = expect !7\ncheck_step.8 = expect !8\ncheck_step.9 = expect 9\n",
     STEP "more than seven 'expect !' in a row"},
};

TEST_EACH(checks, wrong_step_has_its_line, ARRAY_LEN(broken_steps))
{
    char text[1024];

    snprintf(text, sizeof(text), "%s%s", STEPS, broken_steps[_i].text);
    ck_assert_int_eq(config_file_load_text(text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, broken_steps[_i].problem,
                          strlen(broken_steps[_i].problem)) == 0,
                  "%s", config_file.problems);
}

TEST(checks, steps_are_in_the_order_of_their_numbers)
{
    const struct check_conf *conf;

    ck_assert_int_eq(config_file_load_text(STEPS "check_step.10 = expect ~^b\n"
                                                 "check_step.2 = send a\\r\\n\n"
                                                 "check_step.1 = connect port 81\n"
                                                 "check_step.3 = expect !c\n"
                                                 "check_step.11 = expect string\n"
                                                 "check_step.12 = expect strings a\n"),
                     0);
    conf = &config_file.config->server.upstreams[0].checks.check;
    ck_assert_uint_eq(conf->n_steps, 6);
    ck_assert_uint_eq(conf->steps[0].port, 81);
    ck_assert_mem_eq(conf->steps[1].bytes.data, "a\r\n", 3);
    ck_assert_str_eq(conf->steps[1].text, "send");
    ck_assert_int_eq(conf->steps[2].kind, CHECK_STEP_REFUSE);
    ck_assert_str_eq(conf->steps[3].pattern, "^b");
    ck_assert_str_eq(conf->steps[3].text, "expect ~^b");
}

static const struct {
    const char *name;
    unsigned steps;
} named[] = {
    {"redis", 3}, {"redis-master", 7}, {"pgsql", 3}, {"mysql", 7}, {"smtp", 7}, {"ldap", 5},
};

TEST_EACH(checks, named_check_is_steps_that_a_dump_shows, ARRAY_LEN(named))
{
    char text[1024], *dump = NULL;
    size_t size;
    FILE *out;

    snprintf(text, sizeof(text), PROXY SERVER "check = %s\n", named[_i].name);
    ck_assert_msg(config_file_load_text(text) == 0, "%s", config_file.problems);
    ck_assert_uint_eq(config_file.config->server.upstreams[0].checks.check.n_steps,
                      named[_i].steps);
    out = open_memstream(&dump, &size);
    ck_assert_int_eq(config_dump(config_file.config, out), 0);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(dump, "\n#check_step.1 = "));
    free(dump);
}

TEST(checks, user_of_pgsql_is_in_its_packet_with_the_length)
{
    const struct check_conf *conf;
    static const char packet[] = "\0\0\0\x14\0\x03\0\0user\0alice\0";

    ck_assert_int_eq(config_file_load_text(PROXY SERVER "check = pgsql\ncheck_user = alice\n"), 0);
    conf = &config_file.config->server.upstreams[0].checks.check;
    ck_assert_uint_eq(conf->steps[0].bytes.len, sizeof(packet));
    ck_assert_mem_eq(conf->steps[0].bytes.data, packet, sizeof(packet));
    ck_assert_int_eq(config_file_load_text(PROXY SERVER "check = pgsql\ncheck_user = a b\n"),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(config_file.problems, "check_user: 'a b' is not such a name ("));
}
