#include "check/check_http.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

static const char version[] = "HTTP/1.";

/* Places in the status line, and behind it. */
enum {
    CHECK_HTTP_AT_MINOR = sizeof(version) - 1,
    CHECK_HTTP_AT_BLANK,
    CHECK_HTTP_AT_CODE,
    CHECK_HTTP_AT_END = CHECK_HTTP_AT_CODE + 3,
    CHECK_HTTP_IN_LINE,
    CHECK_HTTP_AT_LINE,      /* at its start */
    CHECK_HTTP_AT_EMPTY_LINE /* behind a CR at its start */
};

struct check_http_text {
    char *text;
    size_t size, len;
};

static void check_http_print(struct check_http_text *t, const char *format, ...) PRINTF_LIKE(2, 3);

static void check_http_print(struct check_http_text *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->len < t->size ? t->text + t->len : NULL,
                  t->len < t->size ? t->size - t->len : 0, format, args);
    va_end(args);
    t->len += (size_t)n;
}

static void check_http_print_head(struct check_http_text *t, const struct check_http_conf *conf)
{
    check_http_print(t, "%s %s HTTP/1.%u\r\nHost: ", conf->method, conf->target, conf->minor);
    if (conf->host)
        check_http_print(t, "%s", conf->host);
}

static void check_http_print_tail(struct check_http_text *t, const struct check_http_conf *conf)
{
    check_http_print(t, "\r\n");
    for (unsigned i = 0; i < conf->n_headers; i++)
        check_http_print(t, "%s: %s\r\n", conf->headers[i].name, conf->headers[i].value);
    check_http_print(t, "Connection: close\r\n\r\n");
}

size_t check_http_request_bytes(const struct check_http_conf *conf)
{
    struct check_http_text t = {.text = NULL};

    check_http_print_head(&t, conf);
    check_http_print_tail(&t, conf);
    return t.len;
}

int check_http_write(struct check_http_request *out, struct arena *a,
                     const struct check_http_conf *conf)
{
    size_t len = check_http_request_bytes(conf);
    struct check_http_text head = {.size = len + 1}, tail = {.size = len + 1};

    if (len > CHECK_HTTP_REQUEST_BYTES)
        return -EMSGSIZE;
    head.text = arena_alloc(a, head.size, 1);
    tail.text = arena_alloc(a, tail.size, 1);
    if (!head.text || !tail.text)
        return -ENOMEM;
    check_http_print_head(&head, conf);
    check_http_print_tail(&tail, conf);
    *out = (struct check_http_request){.head = head.text, .tail = tail.text};
    return 0;
}

bool check_http_wants(const struct check_http_conf *conf, unsigned code)
{
    for (unsigned i = 0; i < conf->statuses.n; i++)
        if (code >= conf->statuses.list[i].from && code <= conf->statuses.list[i].to)
            return true;
    return false;
}

bool check_http_has_code(const struct check_http_state *s)
{
    return s->at == CHECK_HTTP_AT_END;
}

struct check_http_state check_http_in_headers(bool at_line_start)
{
    return (struct check_http_state){.at = at_line_start ? CHECK_HTTP_AT_LINE : CHECK_HTTP_IN_LINE};
}

bool check_http_next_header(struct check_http_state *s, unsigned char byte)
{
    if (byte == '\n') {
        bool was_empty = s->at != CHECK_HTTP_IN_LINE;

        s->at = CHECK_HTTP_AT_LINE;
        return was_empty;
    }
    s->at =
        byte == '\r' && s->at == CHECK_HTTP_AT_LINE ? CHECK_HTTP_AT_EMPTY_LINE : CHECK_HTTP_IN_LINE;
    return false;
}

/* 101 ends HTTP on the connection: no other answer follows. */
static bool check_http_is_interim(unsigned code)
{
    return code / 100 == 1 && code != 101;
}

/* The line has its code; ${byte} comes behind it. */
static enum check_http_result
check_http_judge(struct check_http_state *s, const struct check_http_conf *conf, unsigned char byte)
{
    if (byte != ' ' && byte != '\r' && byte != '\n')
        return CHECK_HTTP_OTHER;
    if (check_http_wants(conf, s->code))
        return CHECK_HTTP_STATUS;
    if (!check_http_is_interim(s->code))
        return CHECK_HTTP_OTHER_STATUS;
    *s = check_http_in_headers(byte == '\n');
    return CHECK_HTTP_MORE;
}

static bool check_http_is_in_line(struct check_http_state *s, unsigned char byte)
{
    if (s->at < CHECK_HTTP_AT_MINOR)
        return byte == (unsigned char)version[s->at];
    if (s->at == CHECK_HTTP_AT_MINOR)
        return byte == '0' || byte == '1';
    if (s->at == CHECK_HTTP_AT_BLANK)
        return byte == ' ';
    s->code = 10 * s->code + byte - '0';
    return isdigit(byte) && s->code > 0;
}

enum check_http_result check_http_next(struct check_http_state *s,
                                       const struct check_http_conf *conf, unsigned char byte)
{
    if (s->at == CHECK_HTTP_AT_END)
        return check_http_judge(s, conf, byte);
    if (s->at > CHECK_HTTP_AT_END) {
        if (check_http_next_header(s, byte))
            *s = (struct check_http_state){.at = 0};
        return CHECK_HTTP_MORE;
    }
    if (!check_http_is_in_line(s, byte))
        return CHECK_HTTP_OTHER;
    s->at++;
    return CHECK_HTTP_MORE;
}
