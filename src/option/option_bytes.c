#include "option/option_bytes.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "check/check.h"
#include "ini/diagnostics.h"

#define ESCAPE_SHOWN_BYTES 4

static int option_bytes_refuse_escape(struct option_value *v, const char *at)
{
    size_t len = strnlen(at, at[1] == 'x' ? ESCAPE_SHOWN_BYTES : 2);
    struct diagnostics_quote q;

    if (at[1] == '\0')
        return option_refuse(v, "incomplete escape: a backslash at the end");
    return option_refuse(v, "%s is no escape (\\r, \\n, \\t, \\0, \\\\ and \\xNN are)",
                         diagnostics_quote_bytes(&q, at, len));
}

/* Parse the escape at ${at}; return its length, 0: invalid. */
static size_t option_bytes_read_escape(uint8_t *out, const char *at)
{
    static const char letters[] = "rnt0\\", bytes[] = "\r\n\t\0\\";
    const char *letter = at[1] != '\0' ? strchr(letters, at[1]) : NULL;
    int high, low;

    if (letter) {
        *out = (uint8_t)bytes[letter - letters];
        return 2;
    }
    high = at[1] == 'x' ? parse_hex_digit(at[2]) : -1;
    low = high >= 0 ? parse_hex_digit(at[3]) : -1;
    if (low < 0)
        return 0;
    *out = (uint8_t)(high << 4 | low);
    return 4;
}

int option_bytes_read(uint8_t *out, struct option_value *v, const char *text)
{
    const char *at = text;
    int n = 0;

    while (*at != '\0') {
        size_t used = 1;

        if (*at == '\\')
            used = option_bytes_read_escape(&out[n], at);
        else
            out[n] = (uint8_t)*at;
        if (used == 0)
            return option_bytes_refuse_escape(v, at);
        at += used;
        n++;
    }
    return n;
}

static int option_bytes_set_bytes(const struct option *o, struct option_value *v)
{
    struct check_bytes *field = option_field(o, v);
    uint8_t *data = arena_alloc(v->arena, strlen(v->text), 1);
    int n;

    if (!data)
        return -ENOMEM;
    n = option_bytes_read(data, v, v->text);
    if (n < 0)
        return n;
    if (n > o->max)
        return option_refuse(v, "the value stands for %d bytes", n);
    *field = (struct check_bytes){.data = data, .len = (size_t)n};
    return 0;
}

const struct option_kind option_bytes = {option_bytes_set_bytes, "", 0, NULL};
