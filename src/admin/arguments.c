#include "admin/arguments.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

/* Maximum bytes of a field's name in an error message. */
#define SHOWN_BYTES 64

int arguments_refuse(struct arguments_problem *problem, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(problem->text, sizeof(problem->text), format, args);
    va_end(args);
    for (char *p = problem->text; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return -EINVAL;
}

/* Decode ${text} in place; false: it has a broken escape, or %00. */
static bool arguments_decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        int high, low;

        if (*from != '%') {
            *to++ = *from == '+' ? ' ' : *from;
            continue;
        }
        high = parse_hex_digit(from[1]);
        low = high >= 0 ? parse_hex_digit(from[2]) : -1;
        if (low < 0 || high + low == 0)
            return false;
        *to++ = (char)(16 * high + low);
        from += 2;
    }
    *to = '\0';
    return true;
}

static int arguments_add_item(json_t *fields, char *item, struct arguments_problem *problem)
{
    char *value = strchr(item, '=');
    json_t *text;

    if (!value || value == item)
        return arguments_refuse(problem, "'%.*s' in the query is not NAME=VALUE", SHOWN_BYTES,
                                item);
    *value++ = '\0';
    if (!arguments_decode(item) || !arguments_decode(value))
        return arguments_refuse(problem, "'%.*s' in the query has a broken escape", SHOWN_BYTES,
                                item);
    text = json_string(value); /* NULL: not UTF-8 */
    if (!text)
        return arguments_refuse(problem, "'%.*s' in the query is not UTF-8", SHOWN_BYTES, item);
    if (json_object_get(fields, item)) {
        json_decref(text);
        return arguments_refuse(problem, "'%.*s' is given twice", SHOWN_BYTES, item);
    }
    if (json_object_set_new(fields, item, text) < 0)
        return arguments_refuse(problem, "'%.*s' in the query is not UTF-8", SHOWN_BYTES, item);
    return 0;
}

int arguments_parse_query(json_t **out, const char *query, struct arguments_problem *problem)
{
    json_t *fields = json_object();
    char *copy = strdup(query), *rest = copy;
    int rc = fields && copy ? 0 : -ENOMEM;

    while (rc == 0 && rest && *query != '\0')
        rc = arguments_add_item(fields, strsep(&rest, "&"), problem);
    free(copy);
    if (rc < 0)
        json_decref(fields);
    else
        *out = fields;
    return rc;
}

int arguments_parse_body(json_t **out, const char *text, size_t len,
                         struct arguments_problem *problem)
{
    json_error_t error;
    json_t *body = len > 0 ? json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error)
                           : json_object();

    if (!body && len == 0)
        return -ENOMEM;
    if (!body)
        return arguments_refuse(problem, "the body is not JSON: line %d, column %d: %s", error.line,
                                error.column, error.text);
    if (!json_is_object(body)) {
        json_decref(body);
        return arguments_refuse(problem, "the body is not a JSON object");
    }
    *out = body;
    return 0;
}

static bool arguments_is_listed(const char *name, const char *const *names)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

int arguments_check_names(json_t *fields, const char *const *names,
                          struct arguments_problem *problem)
{
    const char *name;
    json_t *value;

    json_object_foreach(fields, name, value)
    {
        size_t used = 0;
        char list[ARGUMENTS_PROBLEM_BYTES / 2] = "none";

        if (arguments_is_listed(name, names))
            continue;
        for (const char *const *n = names; n && *n && used < sizeof(list); n++)
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "",
                                     *n);
        return arguments_refuse(problem, "'%.*s' is not a field here (%s)", SHOWN_BYTES, name,
                                list);
    }
    return 0;
}
