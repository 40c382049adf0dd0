#include "option/option_check.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "check/check_http.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"

#define BLANKS " \t"

static bool option_check_is_method(const char *word)
{
    return *word != '\0' && word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")] == '\0';
}

/* Has ${text} visible characters of ASCII only? */
static bool option_check_is_visible(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static int option_check_set_version(struct option_value *v, struct check_http_conf *http,
                                    const char *version)
{
    http->minor = 1;
    if (!version)
        return 0;
    if (strcmp(version, "HTTP/1.0") != 0 && strcmp(version, "HTTP/1.1") != 0)
        return option_refuse(v, "%s is neither HTTP/1.0 nor HTTP/1.1", QUOTE_TEXT(version));
    http->minor = (unsigned)(version[strlen(version) - 1] - '0');
    return 0;
}

/* An option of HTTP must leave space for the others in the request. */
static int option_check_limit(struct option_value *v, const struct check_http_conf *http)
{
    size_t len = check_http_request_bytes(http);

    if (len > CHECK_HTTP_REQUEST_BYTES)
        return option_refuse(v, "with it the request has %zu bytes, more than %d", len,
                             CHECK_HTTP_REQUEST_BYTES);
    return 0;
}

static int option_check_set_request(const struct option *o, struct option_value *v)
{
    struct check_http_conf *field = option_field(o, v), http = *field;
    char *list = arena_text(v->arena, v->text, strlen(v->text)), *next;
    int rc;

    if (!list)
        return -ENOMEM;
    http.method = *list == '/' ? "GET" : strtok_r(list, BLANKS, &next);
    http.target = strtok_r(*list == '/' ? list : NULL, BLANKS, &next);
    if (!option_check_is_method(http.method))
        return option_refuse(v, "%s is not a method in capital letters", QUOTE_TEXT(http.method));
    if (!http.target)
        return option_refuse(v, "no path follows the method");
    if (!option_check_is_visible(http.target) || !strchr("/*", http.target[0]))
        return option_refuse(v, "%s is not a path such as /healthz", QUOTE_TEXT(http.target));
    rc = option_check_set_version(v, &http, strtok_r(NULL, BLANKS, &next));
    if (rc == 0 && strtok_r(NULL, BLANKS, &next))
        rc = option_refuse(v, "more than a method, a path and a version");
    if (rc == 0)
        rc = option_check_limit(v, &http);
    if (rc == 0)
        *field = http;
    return rc;
}

static int option_check_set_host(const struct option *o, struct option_value *v)
{
    struct check_http_conf *field = option_field(o, v), http = *field;
    int rc;

    if (!option_check_is_visible(v->text) || strpbrk(v->text, "/?#@\\"))
        return option_refuse(v, "%s is not a host", QUOTE_TEXT(v->text));
    http.host = v->text;
    rc = option_check_limit(v, &http);
    if (rc == 0)
        *field = http;
    return rc;
}

/* Why a header is not sent as the file says; NULL: it is. */
static const char *option_check_header_is_ours(const char *name)
{
    static const struct {
        const char *name, *why;
    } ours[] = {{"host", "the host is check_http_host"},
                {"connection", "it is always 'close'"},
                {"content-length", "a request of a check has no body"},
                {"transfer-encoding", "a request of a check has no body"}};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strcmp(ours[i].name, name) == 0)
            return ours[i].why;
    return NULL;
}

static int option_check_set_header(const struct option *o, struct option_value *v)
{
    struct check_http_conf *field = option_field(o, v);
    const char *name = option_member(o, v->key), *why = option_check_header_is_ours(name);
    int rc;

    if (*name == '\0')
        return option_refuse(v, "no name of a header follows the dot");
    if (why)
        return option_refuse(v, "%s", why);
    for (const char *c = v->text; *c != '\0'; c++)
        if (iscntrl((unsigned char)*c))
            return option_refuse(v, "%s has a control character", QUOTE_TEXT(v->text));
    if (field->n_headers == CHECK_HTTP_HEADERS)
        return option_refuse(v, "there are more than %d headers", CHECK_HTTP_HEADERS);
    field->headers[field->n_headers++] = (struct check_http_header){name, v->text};
    rc = option_check_limit(v, field);
    if (rc < 0)
        field->n_headers--;
    return rc;
}

static bool option_check_read_code(unsigned *code, const char *text)
{
    if (strlen(text) != 3 || strspn(text, "0123456789") != 3 || text[0] == '0')
        return false;
    *code = 100 * (unsigned)(text[0] - '0') + 10 * (unsigned)(text[1] - '0') +
            (unsigned)(text[2] - '0');
    return true;
}

static bool option_check_read_range(struct check_http_range *range, char *text)
{
    char *to = strchr(text, '-');

    if (to)
        *to++ = '\0';
    return option_check_read_code(&range->from, text) &&
           option_check_read_code(&range->to, to ? to : text) && range->from <= range->to;
}

static int option_check_set_status(const struct option *o, struct option_value *v)
{
    struct check_http_conf *field = option_field(o, v);
    struct check_http_statuses found = {.n = 0};
    char *list = arena_text(v->arena, v->text, strlen(v->text));

    if (!list)
        return -ENOMEM;
    while (list) {
        char *item = option_kind_next_item(&list);
        char *copy = arena_text(v->arena, item, strlen(item));

        if (!copy)
            return -ENOMEM;
        if (found.n == CHECK_HTTP_RANGES)
            return option_refuse(v, "there are more than %d codes and ranges", CHECK_HTTP_RANGES);
        if (!option_check_read_range(&found.list[found.n++], copy))
            return option_refuse(v, "%s is not a code or range from 100 to 999", QUOTE_TEXT(item));
    }
    field->statuses = found;
    return 0;
}

const struct option_kind option_check_request = {option_check_set_request, "", 0, NULL};
const struct option_kind option_check_host = {option_check_set_host, "", 0, NULL};
const struct option_kind option_check_header = {option_check_set_header, "", 0, NULL};
const struct option_kind option_check_status = {option_check_set_status, "", 0, NULL};
