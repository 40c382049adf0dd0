#include "option/option_rate.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/parse.h"
#include "ini/diagnostics.h"
#include "limits/token_bucket.h"

#define BLANKS " \t"
#define BURST  "burst="

#define BURST_NS (100 * NS_PER_MS)

static int option_rate_parse_number(struct option_value *v, uint64_t *out, const char *word,
                                    const char *what)
{
    if (parse_uint(out, word, OPTION_RATE_MAX) < 0 || *out == 0)
        return option_refuse(v, "%s is not a %s from 1 to %d", QUOTE_TEXT(word), what,
                             OPTION_RATE_MAX);
    return 0;
}

static int option_rate_parse_period(struct option_value *v, int64_t *out_ns, const char *word)
{
    static const struct {
        const char *word;
        int64_t ns;
    } units[] = {{"s", NS_PER_S}, {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}};

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(units[i].word, word) == 0) {
            *out_ns = units[i].ns;
            return 0;
        }
    }
    return option_refuse(v, "%s is not s, m or h", QUOTE_TEXT(word));
}

/* Parse `100/s`; modifies ${word}. */
static int option_rate_parse_rate(struct option_value *v, struct token_bucket_conf *rate,
                                  char *word)
{
    char *unit = strchr(word, '/');
    int rc;

    if (!unit)
        return option_refuse(v, "%s has no unit of time", QUOTE_TEXT(word));
    *unit++ = '\0';
    rc = option_rate_parse_number(v, &rate->tokens, word, "number");
    if (rc == 0)
        rc = option_rate_parse_period(v, &rate->period_ns, unit);
    if (rc < 0)
        return rc;
    rate->burst = rate->tokens * BURST_NS / (uint64_t)rate->period_ns;
    if (rate->burst == 0)
        rate->burst = 1;
    return 0;
}

/* Parse `100/s burst=20`; modifies ${rest}. */
static int option_rate_parse_words(struct option_value *v, struct token_bucket_conf *rate,
                                   char *rest)
{
    int rc = option_rate_parse_rate(v, rate, strsep(&rest, BLANKS));

    if (rc < 0 || !rest)
        return rc;
    rest += strspn(rest, BLANKS);
    if (strncmp(rest, BURST, strlen(BURST)) != 0)
        return option_refuse(v, "%s is not " BURST "N", QUOTE_TEXT(rest));
    return option_rate_parse_number(v, &rate->burst, rest + strlen(BURST), "burst");
}

static int option_rate_set_rate(const struct option *o, struct option_value *v)
{
    struct token_bucket_conf rate = {.period_ns = NS_PER_S, .burst = 1};
    char *words = arena_text(v->arena, v->text, strlen(v->text));
    int rc = 0;

    if (!words)
        return -ENOMEM;
    if (strcmp(words, "0") != 0)
        rc = option_rate_parse_words(v, &rate, words);
    if (rc == 0)
        memcpy(option_field(o, v), &rate, sizeof(rate));
    return rc;
}

const struct option_kind option_rate = {option_rate_set_rate, "", 0, NULL};
