#include "base/parse.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit size_units[] = {
    {"", 1},
    {"b", 1},
    {"k", UINT64_C(1) << 10},
    {"m", UINT64_C(1) << 20},
    {"g", UINT64_C(1) << 30},
    {NULL, 0},
};

static const struct unit duration_units[] = {
    {"us", NS_PER_US},      {"ms", NS_PER_MS}, {"s", NS_PER_S}, {"m", 60 * NS_PER_S},
    {"h", 3600 * NS_PER_S}, {"d", NS_PER_DAY}, {NULL, 0},
};

/* Parse the digits up to ${end}. A leading zero, which suggests octal, is an error. */
static int parse_digits(uint64_t *out, const char *word, const char **end, bool *overflow)
{
    uint64_t n = 0;
    const char *p = word;

    if (*p == '0' && p[1] >= '0' && p[1] <= '9')
        return -EINVAL;
    *overflow = false;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
            *overflow = true;
    }
    if (p == word)
        return -EINVAL;
    *end = p;
    *out = *overflow ? UINT64_MAX : n;
    return 0;
}

int parse_uint(uint64_t *out, const char *word, uint64_t max)
{
    uint64_t n;
    const char *end;
    bool overflow;
    int rc = parse_digits(&n, word, &end, &overflow);

    if (rc < 0)
        return rc;
    if (*end != '\0')
        return -EINVAL;
    if (overflow || n > max)
        return -ERANGE;
    *out = n;
    return 0;
}

static int parse_scaled(uint64_t *out, const char *word, const struct unit *units, uint64_t max)
{
    uint64_t n;
    const char *end;
    bool overflow;
    int rc = parse_digits(&n, word, &end, &overflow);

    if (rc < 0)
        return rc;
    while (units->name && strcasecmp(units->name, end) != 0)
        units++;
    if (!units->name)
        return -EINVAL;
    if (overflow || __builtin_mul_overflow(n, units->factor, &n) || n > max)
        return -ERANGE;
    *out = n;
    return 0;
}

int parse_size(uint64_t *out_bytes, const char *word, uint64_t max_bytes)
{
    return parse_scaled(out_bytes, word, size_units, max_bytes);
}

int parse_duration(int64_t *out_ns, const char *word, int64_t max_ns)
{
    uint64_t ns;
    int rc;

    MUST(max_ns >= 0);
    if (strcmp(word, "0") == 0) {
        *out_ns = 0;
        return 0;
    }
    rc = parse_scaled(&ns, word, duration_units, (uint64_t)max_ns);
    if (rc < 0)
        return rc;
    *out_ns = (int64_t)ns;
    return 0;
}

int parse_percent(unsigned *out, const char *word)
{
    uint64_t n;
    const char *end;
    bool overflow;
    int rc = parse_digits(&n, word, &end, &overflow);

    if (rc < 0)
        return rc;
    if (*end != '\0' && strcmp(end, "%") != 0)
        return -EINVAL;
    if (overflow || n > 100)
        return -ERANGE;
    *out = (unsigned)n;
    return 0;
}

int parse_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int parse_bool(bool *out, const char *word)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {
        {"yes", true}, {"on", true},   {"true", true},   {"1", true},
        {"no", false}, {"off", false}, {"false", false}, {"0", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasecmp(words[i].word, word) == 0) {
            *out = words[i].value;
            return 0;
        }
    }
    return -EINVAL;
}
