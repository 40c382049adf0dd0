#include "ctl/ctl_value.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/must.h"
#include "base/parse.h"

static const char *const sort_words[] = {"age", "idle", "load", "bytes", NULL};
static const char *const setting_words[] = {"io_ratio", "log_level", "workers", NULL};

static bool ctl_value_is_duration(const char *text)
{
    int64_t ns;

    return parse_duration(&ns, text, CTL_VALUE_MAX_DURATION_NS) == 0 && ns > 0;
}

static bool ctl_value_is_bytes(const char *text)
{
    uint64_t n;

    return parse_size(&n, text, INT64_MAX) == 0;
}

static bool ctl_value_is_number(const char *text)
{
    uint64_t n;

    return parse_uint(&n, text, INT64_MAX) == 0;
}

static bool ctl_value_is_percent(const char *text)
{
    unsigned n;

    return parse_percent(&n, text) == 0 && n > 0;
}

static bool ctl_value_is_server(const char *text)
{
    const char *slash = strchr(text, '/');

    return slash && slash > text && slash[1] != '\0' && !strchr(slash + 1, '/');
}

static bool ctl_value_is_session_id(const char *text)
{
    return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

static bool ctl_value_is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

const char *const *ctl_value_words(enum ctl_value kind)
{
    switch (kind) {
    case CTL_VALUE_SORT: return sort_words;
    case CTL_VALUE_SETTING: return setting_words;
    default: return NULL;
    }
}

/* Is ${text} UTF-8 without control characters? A line may have a path. */
static bool ctl_value_is_line(const char *text)
{
    json_t *string = json_string(text); /* NULL: not UTF-8 */
    bool is_line = string;

    json_decref(string);
    for (; *text; text++)
        is_line = is_line && (unsigned char)*text >= ' ' && *text != 0x7f;
    return is_line;
}

/* Is ${text} printable ASCII without blanks? Paths and addresses may have any byte. */
static bool ctl_value_is_plain(enum ctl_value kind, const char *text)
{
    if (kind == CTL_VALUE_FILE || kind == CTL_VALUE_ADDRESS)
        return true;
    if (kind == CTL_VALUE_LINE)
        return ctl_value_is_line(text);
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

const char *ctl_value_check(enum ctl_value kind, const char *text)
{
    if (text[0] == '\0')
        return "is empty";
    if (!ctl_value_is_plain(kind, text))
        return kind == CTL_VALUE_LINE ? "has characters that no line of a server has"
                                      : "has blanks, or characters that no name has";
    switch (kind) {
    case CTL_VALUE_DURATION:
        return ctl_value_is_duration(text) ? NULL : "is no duration from 1us to 365d, such as 10s";
    case CTL_VALUE_BYTES:
        return ctl_value_is_bytes(text) ? NULL : "is no number of bytes, such as 10m";
    case CTL_VALUE_NUMBER: return ctl_value_is_number(text) ? NULL : "is no number";
    case CTL_VALUE_PERCENT: return ctl_value_is_percent(text) ? NULL : "is not 1 to 100 percent";
    case CTL_VALUE_SERVER:
        return ctl_value_is_server(text) ? NULL : "is no server: write UPSTREAM/SERVER";
    case CTL_VALUE_SESSION_ID:
        return ctl_value_is_session_id(text) ? NULL : "is no session ID of 32 digits 0-9 a-f";
    case CTL_VALUE_SORT:
        return ctl_value_is_one_of(text, sort_words) ? NULL : "is not age, idle, bytes or load";
    case CTL_VALUE_SETTING:
        return ctl_value_is_one_of(text, setting_words) ? NULL
                                                        : "is not io_ratio, log_level or workers";
    default: return NULL;
    }
}

int64_t ctl_value_ns(const char *text)
{
    int64_t ns = 0;

    MUST(parse_duration(&ns, text, CTL_VALUE_MAX_DURATION_NS) == 0);
    return ns;
}

int64_t ctl_value_number(enum ctl_value kind, const char *text)
{
    uint64_t n = 0;
    unsigned percent = 0;

    if (kind == CTL_VALUE_PERCENT) {
        MUST(parse_percent(&percent, text) == 0);
        return percent;
    }
    MUST((kind == CTL_VALUE_BYTES ? parse_size : parse_uint)(&n, text, INT64_MAX) == 0);
    return (int64_t)n;
}
