#include "stats/access_log_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"

static const char hex_digits[] = "0123456789abcdef";

void access_log_text_copy(struct access_log_text *t, const char *bytes, size_t len)
{
    MUST(len <= (size_t)(t->end - t->at));
    memcpy(t->at, bytes, len);
    t->at += len;
}

static void access_log_text_put_char(struct access_log_text *t, char c)
{
    MUST(t->at < t->end);
    *t->at++ = c;
}

static bool access_log_text_means_itself(enum access_log_text_style style, unsigned char c)
{
    if (c == '"' || c == '\\')
        return false;
    return style == ACCESS_LOG_TEXT_PLAIN ? c > 0x20 && c < 0x7f : c >= 0x20 && c < 0x7f;
}

static void access_log_text_put_hex(struct access_log_text *t, const char *head, unsigned char c)
{
    access_log_text_copy(t, head, strlen(head));
    access_log_text_put_char(t, hex_digits[c >> 4]);
    access_log_text_put_char(t, hex_digits[c & 0xf]);
}

static bool access_log_text_continues(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the UTF-8 character at ${s}; 0: invalid. */
static size_t access_log_text_utf8_len(const unsigned char *s, const unsigned char *end)
{
    size_t len = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : 2;

    if (*s < 0xc2 || *s > 0xf4 || (size_t)(end - s) < len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if (!access_log_text_continues(s[i]))
            return 0;
    if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90))
        return 0; /* overlong encoding */
    if ((*s == 0xed && s[1] >= 0xa0) || (*s == 0xf4 && s[1] >= 0x90))
        return 0; /* surrogate, or above U+10FFFF */
    return len;
}

/* Write the character at ${s}, which needs an escape or is not ASCII; return its length. */
static size_t access_log_text_put_json_escape(struct access_log_text *t, const unsigned char *s,
                                              const unsigned char *end)
{
    size_t len;

    if (*s == '"' || *s == '\\') {
        access_log_text_put_char(t, '\\');
        access_log_text_put_char(t, (char)*s);
        return 1;
    }
    if (*s < 0x80) {
        access_log_text_put_hex(t, "\\u00", *s);
        return 1;
    }
    len = access_log_text_utf8_len(s, end);
    if (len > 0)
        access_log_text_copy(t, (const char *)s, len);
    else
        access_log_text_copy(t, "\\ufffd", 6);
    return len > 0 ? len : 1;
}

void access_log_text_value(struct access_log_text *t, const char *bytes, size_t len)
{
    const unsigned char *s = (const unsigned char *)bytes, *end = s + len;

    if (t->style == ACCESS_LOG_TEXT_JSON)
        access_log_text_put_char(t, '"');
    while (s < end) {
        const unsigned char *plain = s;

        while (s < end && access_log_text_means_itself(t->style, *s))
            s++;
        access_log_text_copy(t, (const char *)plain, (size_t)(s - plain));
        if (s == end)
            break;
        if (t->style == ACCESS_LOG_TEXT_JSON)
            s += access_log_text_put_json_escape(t, s, end);
        else
            access_log_text_put_hex(t, "\\x", *s++);
    }
    if (t->style == ACCESS_LOG_TEXT_JSON)
        access_log_text_put_char(t, '"');
}

void access_log_text_missing(struct access_log_text *t)
{
    if (t->style == ACCESS_LOG_TEXT_JSON)
        access_log_text_copy(t, "null", 4);
    else
        access_log_text_put_char(t, '-');
}

void access_log_text_number(struct access_log_text *t, uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    access_log_text_copy(t, digits + at, sizeof(digits) - at);
}

void access_log_text_digits(struct access_log_text *t, uint64_t n, unsigned width)
{
    MUST(width <= (size_t)(t->end - t->at));
    for (unsigned i = width; i-- > 0; n /= 10)
        t->at[i] = (char)('0' + n % 10);
    t->at += width;
}

void access_log_text_seconds(struct access_log_text *t, int64_t ns)
{
    access_log_text_number(t, (uint64_t)(ns / NS_PER_S));
    access_log_text_put_char(t, '.');
    access_log_text_digits(t, (uint64_t)(ns % NS_PER_S / NS_PER_US), 6);
}
