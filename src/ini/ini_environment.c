#include "ini/ini_environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 128
#define CAPITALS   "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS     "0123456789"

struct reference {
    char name[NAME_BYTES + 1];
    const char *fallback; /* NULL: no default */
    size_t fallback_len;
    const char *end; /* behind the closing brace */
};

static bool ini_environment_parse_reference(struct reference *r, const char *text)
{
    const char *name = text + 2;
    size_t len = strspn(name, CAPITALS DIGITS);
    const char *close = strchr(name, '}');

    if (len == 0 || len > NAME_BYTES || strspn(name, DIGITS) > 0 || !close)
        return false;
    *r = (struct reference){.end = close + 1};
    memcpy(r->name, name, len);
    if (strncmp(name + len, ":-", 2) == 0) {
        r->fallback = name + len + 2;
        r->fallback_len = (size_t)(close - r->fallback);
        return true;
    }
    return name + len == close;
}

bool ini_environment_fits_in_a_file(const char *value)
{
    for (const char *p = value; *p != '\0'; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    }
    return !strstr(value, "${") && !(strchr(value, '"') && strchr(value, '\''));
}

static int ini_environment_refuse(struct ini_environment *out, const struct reference *r,
                                  const char *what)
{
    snprintf(out->problem, sizeof(out->problem), "the environment variable %s %s", r->name, what);
    return -EINVAL;
}

static int ini_environment_add(struct ini_environment *out, size_t *len, const char *text, size_t n)
{
    if (*len + n > out->max_bytes) {
        snprintf(out->problem, sizeof(out->problem),
                 "the value is too long with its environment variables (at most %zu characters)",
                 out->max_bytes);
        return -EINVAL;
    }
    memcpy(out->text + *len, text, n);
    *len += n;
    out->text[*len] = '\0';
    return 0;
}

static int ini_environment_add_variable(struct ini_environment *out, size_t *len,
                                        const struct reference *r)
{
    const char *value = getenv(r->name);

    if (r->fallback && (!value || *value == '\0'))
        return ini_environment_add(out, len, r->fallback, r->fallback_len);
    if (!value)
        return ini_environment_refuse(out, r, "is not set (${NAME:-DEFAULT} gives a default)");
    if (!ini_environment_fits_in_a_file(value))
        return ini_environment_refuse(
            out, r, "contains a control character, both kinds of quotes or a variable");
    return ini_environment_add(out, len, value, strlen(value));
}

int ini_environment_expand(struct ini_environment *out, const char *value, size_t max_bytes)
{
    struct reference r;
    size_t len = 0;
    int rc = 0;

    MUST(max_bytes <= INI_VALUE_BYTES);
    out->max_bytes = max_bytes;
    out->text[0] = out->problem[0] = '\0';
    while (rc == 0 && *value != '\0') {
        size_t plain = strcspn(value, "$");

        if (plain > 0) {
            rc = ini_environment_add(out, &len, value, plain);
            value += plain;
        } else if (value[1] == '{' && ini_environment_parse_reference(&r, value)) {
            rc = ini_environment_add_variable(out, &len, &r);
            value = r.end;
        } else {
            plain = value[1] == '$' ? 2 : 1;
            rc = ini_environment_add(out, &len, value, plain);
            value += plain;
        }
    }
    return rc;
}
