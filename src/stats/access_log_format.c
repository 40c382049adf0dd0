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
    enum access_log_text_style style;
    unsigned n_pieces;
    size_t max_bytes;
    struct access_piece *pieces;
};

/* Only append columns, because readers of the log count columns. */
static const char text_format[] =
    "$time $connection $client $client_port $listener $listen_address $upstream $server "
    "$server_address $bytes_in $bytes_out $duration $queue_time $connect_time $first_byte_time "
    "$tries $reason $worker";

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

static int access_log_format_add_all_keys(const struct access_parser *p)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < access_log_variable_count(); i++) {
        const char *name = access_log_variable_at(i)->name;

        rc = access_log_format_add_key(p, name, strlen(name));
    }
    return rc;
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
    static const char json[] = "json";
    bool is_json = strncmp(text, json, strlen(json)) == 0;
    const char *rest = is_json ? text + strlen(json) : text;
    int rc;

    if (strcmp(text, "text") == 0)
        return access_log_format_parse_own(p, text_format);
    if (!is_json || (*rest != '\0' && *rest != ':'))
        return access_log_format_parse_own(p, text);
    p->format->style = ACCESS_LOG_TEXT_JSON;
    rc = *rest == '\0' ? access_log_format_add_all_keys(p)
                       : access_log_format_parse_keys(p, rest + 1);
    if (rc == 0)
        access_log_format_add_bytes(p, "}", 1);
    return rc;
}

int access_log_format_parse(const struct access_log_format **out, const char *text,
                            struct arena *arena, struct access_log_format_problem *problem)
{
    /* A JSON key has at least one byte, and makes at most four pieces. */
    size_t max_pieces = 4 * (strlen(text) + access_log_variable_count()) + sizeof(text_format);
    struct access_log_format *f = arena_alloc(arena, 1, sizeof(*f));
    const struct access_parser p = {.format = f, .problem = problem};
    int rc;

    if (!f)
        return -ENOMEM;
    f->pieces = arena_alloc(arena, max_pieces, sizeof(*f->pieces));
    if (!f->pieces)
        return -ENOMEM;
    rc = access_log_format_read(&p, text);
    if (rc < 0)
        return rc;
    MUST(f->n_pieces <= max_pieces);
    access_log_format_add_bytes(&p, "\n", 1);
    if (f->max_bytes > ACCESS_LOG_LINE_BYTES)
        return access_log_format_refuse(&p, ACCESS_LOG_FORMAT_LONG, text, strlen(text));
    *out = f;
    return 0;
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
