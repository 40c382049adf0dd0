#include "stats/access_log_format.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "stats/access_log_text.h"
#include "stats/access_log_variable.h"

/* Part of a line: literal bytes, then a variable (NULL: none). */
struct access_piece {
    const char *bytes;
    size_t len;
    const struct access_log_variable *variable;
};

struct access_log_format {
    const char *text;
    enum access_log_text_style style;
    unsigned asks; /* enum access_log_ask */
    unsigned n_pieces;
    size_t max_bytes;
    struct access_piece *pieces;
};

/* Only append columns, because readers of the log count columns. */
static const char text_format[] =
    "$time $connection $client $client_port $listener $listen_address $upstream $server "
    "$server_address $bytes_in $bytes_out $duration $queue_time $connect_time $first_byte_time "
    "$tries $reason $worker";

#define JSON "json:"

/* A new variable is not added: it would change the log of each user of `json`. */
static const char json_format[] = JSON
    "time,msec,connection,client,client_port,listener,listen_address,upstream,server,"
    "server_address,bytes_in,bytes_out,duration,queue_time,connect_time,first_byte_time,tries,"
    "reason,worker,pid,unique_id,proxy,sni,alpn,ja4,tls_version,tls_cipher,tls_group,tls_resumed,"
    "tls_client_name,tls_client_fingerprint,tls_handshake_time,tls_alert,server_tls_alert";

const char *access_log_format_variable(unsigned i)
{
    return i < access_log_variable_count() ? access_log_variable_at(i)->name : NULL;
}

struct access_parser {
    struct access_log_format *format;
    struct access_log_format_problem *problem;
};

static int access_log_format_refuse(const struct access_parser *p, int kind, const char *name,
                                    size_t len)
{
    *p->problem = (struct access_log_format_problem){.kind = kind, .name = name, .len = len};
    return -EINVAL;
}

static void access_log_format_add_bytes(const struct access_parser *p, const char *bytes,
                                        size_t len)
{
    struct access_log_format *f = p->format;

    if (len == 0)
        return;
    f->pieces[f->n_pieces++] = (struct access_piece){.bytes = bytes, .len = len};
    f->max_bytes += len;
}

static int access_log_format_add_variable(const struct access_parser *p, const char *name,
                                          size_t len)
{
    const struct access_log_variable *variable = access_log_variable_find(name, len);
    struct access_log_format *f = p->format;

    if (!variable)
        return access_log_format_refuse(p, ACCESS_LOG_FORMAT_UNKNOWN, name, len);
    f->pieces[f->n_pieces++] = (struct access_piece){.bytes = "", .variable = variable};
    f->max_bytes += access_log_variable_max_bytes(variable);
    f->asks |= variable->asks;
    return 0;
}

static size_t access_log_format_name_len(const char *text)
{
    size_t len = 0;

    while (isalnum((unsigned char)text[len]) || text[len] == '_')
        len++;
    return len;
}

/* Add the variable, or second `$`, at *${text}, behind a `$`. Move *${text} behind it. */
static int access_log_format_parse_dollar(const struct access_parser *p, const char **text)
{
    bool braces = **text == '{';
    const char *name = *text + braces;
    size_t len = access_log_format_name_len(name);

    if (**text == '$') {
        access_log_format_add_bytes(p, (*text)++, 1);
        return 0;
    }
    if (len == 0 || (braces && name[len] != '}'))
        return access_log_format_refuse(p, ACCESS_LOG_FORMAT_NO_NAME, *text, strlen(*text));
    *text = name + len + braces;
    return access_log_format_add_variable(p, name, len);
}

static int access_log_format_parse_own(const struct access_parser *p, const char *text)
{
    const char *whole = text;
    bool has_variable = false;
    int rc = 0;

    while (rc == 0 && *text != '\0') {
        size_t len = strcspn(text, "$");

        access_log_format_add_bytes(p, text, len);
        text += len;
        if (*text == '$') {
            text++;
            has_variable |= *text != '$';
            rc = access_log_format_parse_dollar(p, &text);
        }
    }
    if (rc == 0 && !has_variable)
        return access_log_format_refuse(p, ACCESS_LOG_FORMAT_CONSTANT, whole, strlen(whole));
    return rc;
}

static int access_log_format_add_key(const struct access_parser *p, const char *name, size_t len)
{
    const struct access_log_variable *variable = access_log_variable_find(name, len);
    struct access_log_format *f = p->format;

    for (unsigned i = 0; i < f->n_pieces; i++)
        if (variable && f->pieces[i].variable == variable)
            return access_log_format_refuse(p, ACCESS_LOG_FORMAT_TWICE, name, len);
    access_log_format_add_bytes(p, f->n_pieces > 0 ? ",\"" : "{\"", 2);
    access_log_format_add_bytes(p, name, len);
    access_log_format_add_bytes(p, "\":", 2);
    return access_log_format_add_variable(p, name, len);
}

static int access_log_format_parse_keys(const struct access_parser *p, const char *text)
{
    for (;;) {
        size_t len;
        int rc;

        text += strspn(text, " \t");
        len = access_log_format_name_len(text);
        if (len == 0)
            return access_log_format_refuse(p, ACCESS_LOG_FORMAT_NO_NAME, text, strlen(text));
        rc = access_log_format_add_key(p, text, len);
        if (rc < 0)
            return rc;
        text += len;
        text += strspn(text, " \t");
        if (*text == '\0')
            return 0;
        if (*text++ != ',')
            return access_log_format_refuse(p, ACCESS_LOG_FORMAT_NO_NAME, text - 1,
                                            strlen(text - 1));
    }
}

static int access_log_format_read(const struct access_parser *p, const char *text)
{
    int rc;

    if (strncmp(text, JSON, strlen(JSON)) != 0)
        return access_log_format_parse_own(p, text);
    p->format->style = ACCESS_LOG_TEXT_JSON;
    rc = access_log_format_parse_keys(p, text + strlen(JSON));
    if (rc == 0)
        access_log_format_add_bytes(p, "}", 1);
    return rc;
}

static const char *access_log_format_resolve_name(const char *text)
{
    if (strcmp(text, "text") == 0)
        return text_format;
    return strcmp(text, "json") == 0 ? json_format : text;
}

/* Each `$` and each key makes at most four pieces; the end of the line one or two. */
static size_t access_log_format_max_pieces(const char *text)
{
    size_t n = 1;

    for (; *text != '\0'; text++)
        n += *text == '$' || *text == ',';
    return 4 * n + 2;
}

int access_log_format_parse(const struct access_log_format **out, const char *text,
                            struct arena *arena, struct access_log_format_problem *problem)
{
    struct access_log_format *f = arena_alloc(arena, 1, sizeof(*f));
    const struct access_parser p = {.format = f, .problem = problem};
    size_t max_pieces;
    int rc;

    if (!f)
        return -ENOMEM;
    f->text = text;
    text = access_log_format_resolve_name(text);
    max_pieces = access_log_format_max_pieces(text);
    f->pieces = arena_alloc(arena, max_pieces, sizeof(*f->pieces));
    if (!f->pieces)
        return -ENOMEM;
    rc = access_log_format_read(&p, text);
    if (rc < 0)
        return rc;
    access_log_format_add_bytes(&p, "\n", 1);
    MUST(f->n_pieces <= max_pieces);
    if (f->max_bytes > ACCESS_LOG_LINE_BYTES)
        return access_log_format_refuse(&p, ACCESS_LOG_FORMAT_LONG, text, strlen(text));
    *out = f;
    return 0;
}

int access_log_format_copy(const struct access_log_format **out, const struct access_log_format *f,
                           struct arena *arena)
{
    const char *text = arena_text(arena, f->text, strlen(f->text));
    struct access_log_format_problem problem;
    int rc = text ? access_log_format_parse(out, text, arena, &problem) : -ENOMEM;

    MUST(rc != -EINVAL);
    return rc;
}

unsigned access_log_format_asks(const struct access_log_format *f)
{
    return f->asks;
}

size_t access_log_format_write(const struct access_log_format *f, const struct access_log_record *r,
                               char *line)
{
    struct access_log_text t = {.style = f->style, .at = line, .end = line + ACCESS_LOG_LINE_BYTES};

    for (unsigned i = 0; i < f->n_pieces; i++) {
        const struct access_piece *piece = &f->pieces[i];

        access_log_text_copy(&t, piece->bytes, piece->len);
        if (piece->variable)
            access_log_variable_write(piece->variable, &t, r);
    }
    return (size_t)(t.at - line);
}
