/* check/check_http: the status line is parsed to the byte, the request has what was asked for. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "check/check_http.h"
#include "support/suite.h"

static struct check_http_conf conf;
static struct check_http_state state;

static void setup(void)
{
    conf = (struct check_http_conf){.method = "GET",
                                    .target = "/",
                                    .minor = 1,
                                    .statuses = {.list = {{200, 299}, {404, 404}}, .n = 2}};
}

/* The first result that is not MORE, and how many bytes it took. */
static enum check_http_result read_answer(const char *text, size_t *used)
{
    enum check_http_result result = CHECK_HTTP_MORE;

    state = (struct check_http_state){.at = 0};
    for (*used = 0; text[*used] != '\0' && result == CHECK_HTTP_MORE; (*used)++)
        result = check_http_next(&state, &conf, (unsigned char)text[*used]);
    return result;
}

GROUP(http, setup, NULL);

static const struct {
    const char *answer;
    enum check_http_result result;
    unsigned code;
} answers[] = {
    {"HTTP/1.1 200 OK\r\n", CHECK_HTTP_STATUS, 200},
    {"HTTP/1.0 299\r\n", CHECK_HTTP_STATUS, 299},
    {"HTTP/1.1 404\n", CHECK_HTTP_STATUS, 404},
    {"HTTP/1.1 300 x\r\n", CHECK_HTTP_OTHER_STATUS, 300},
    {"HTTP/1.1 503 Service Unavailable\r\n", CHECK_HTTP_OTHER_STATUS, 503},
    {"HTTP/1.1 101 Switching Protocols\r\n", CHECK_HTTP_OTHER_STATUS, 101},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", CHECK_HTTP_STATUS, 200},
    {"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 500 x\r\n", CHECK_HTTP_OTHER_STATUS, 500},
    {"HTTP/1.1 100\n\nHTTP/1.0 200\n", CHECK_HTTP_STATUS, 200},
    {"HTTP/1.1 100\r\nX: HTTP/1.1 200\r\n", CHECK_HTTP_MORE, 0},
    {"HTTP/1.1 20", CHECK_HTTP_MORE, 0},
    {"HTTP/1.1 2000 OK", CHECK_HTTP_OTHER, 0},
    {"HTTP/1.1 020 OK", CHECK_HTTP_OTHER, 0},
    {"HTTP/1.1  200 OK", CHECK_HTTP_OTHER, 0},
    {"HTTP/1.2 200 OK", CHECK_HTTP_OTHER, 0},
    {"HTTP/2 200", CHECK_HTTP_OTHER, 0},
    {"http/1.1 200 OK", CHECK_HTTP_OTHER, 0},
    {"\r\nHTTP/1.1 200 OK", CHECK_HTTP_OTHER, 0},
    {"SSH-2.0-OpenSSH", CHECK_HTTP_OTHER, 0},
    {"HTTP/1.1 2a0 ", CHECK_HTTP_OTHER, 0},
};

TEST_EACH(http, status_line_is_parsed, ARRAY_LEN(answers))
{
    size_t used;

    ck_assert_int_eq(read_answer(answers[_i].answer, &used), answers[_i].result);
    if (answers[_i].code > 0)
        ck_assert_uint_eq(state.code, answers[_i].code);
    ck_assert(check_http_has_code(&state) ==
              (answers[_i].code > 0 || strstr(answers[_i].answer, "2000")));
}

TEST(http, answer_is_judged_behind_its_code)
{
    size_t used;

    ck_assert_int_eq(read_answer("HTTP/1.1 200 OK\r\n", &used), CHECK_HTTP_STATUS);
    ck_assert_uint_eq(used, strlen("HTTP/1.1 200 "));
}

TEST(http, interim_answer_that_is_wanted_is_taken)
{
    size_t used;

    conf.statuses.list[1] = (struct check_http_range){100, 100};
    ck_assert_int_eq(read_answer("HTTP/1.1 100 Continue\r\n", &used), CHECK_HTTP_STATUS);
}

static const struct {
    const char *headers;
    bool at_line_start;
    size_t len; /* up to their end; 0: none */
} ends[] = {
    {"OK\r\nA: b\r\n\r\nbody", false, 12},
    {"\r\nbody", true, 2},
    {"\nbody", true, 1},
    {"A: b\n\nbody", true, 6},
    {"A\r\n\rB\r\n", false, 0},
};

TEST_EACH(http, headers_end_with_an_empty_line, ARRAY_LEN(ends))
{
    struct check_http_state s = check_http_in_headers(ends[_i].at_line_start);
    size_t i = 0;
    bool is_end = false;

    while (!is_end && ends[_i].headers[i] != '\0')
        is_end = check_http_next_header(&s, (unsigned char)ends[_i].headers[i++]);
    ck_assert_uint_eq(is_end ? i : 0, ends[_i].len);
}

TEST(http, request_has_the_host_between_head_and_tail)
{
    struct check_http_request request;
    struct arena *arena;

    ck_assert_int_eq(arena_create(&arena), 0);
    conf.headers[conf.n_headers++] = (struct check_http_header){"x-probe", "1"};
    ck_assert_int_eq(check_http_write(&request, arena, &conf), 0);
    ck_assert_str_eq(request.head, "GET / HTTP/1.1\r\nHost: ");
    ck_assert_str_eq(request.tail, "\r\nx-probe: 1\r\nConnection: close\r\n\r\n");
    conf.host = "a.example";
    conf.minor = 0;
    ck_assert_int_eq(check_http_write(&request, arena, &conf), 0);
    ck_assert_str_eq(request.head, "GET / HTTP/1.0\r\nHost: a.example");
    arena_release(arena);
}

TEST(http, request_that_is_too_long_is_refused)
{
    static char value[CHECK_HTTP_REQUEST_BYTES];
    struct check_http_request request;
    struct arena *arena;

    ck_assert_int_eq(arena_create(&arena), 0);
    memset(value, 'x', sizeof(value) - 1);
    conf.headers[conf.n_headers++] = (struct check_http_header){"a", value};
    ck_assert_int_eq(check_http_write(&request, arena, &conf), -EMSGSIZE);
    value[sizeof(value) - 1 - (check_http_request_bytes(&conf) - CHECK_HTTP_REQUEST_BYTES)] = '\0';
    ck_assert_int_eq(check_http_write(&request, arena, &conf), 0);
    arena_release(arena);
}
