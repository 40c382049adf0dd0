#include "option/option_ban.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/parse.h"
#include "option/option_proxy.h"
#include "ini/diagnostics.h"
#include "limits/ban.h"
#include "net/cidr.h"

#define BLANKS " \t"

/* Words of `DURATION after N in DURATION`. */
enum { BAN_FOR, BAN_AFTER, BAN_OFFENCES_WORD, BAN_IN, BAN_WINDOW, BAN_WORDS };

static unsigned option_ban_split(char **words, char *text)
{
    unsigned n = 0;

    for (char *word; (word = strsep(&text, BLANKS)) != NULL;) {
        if (*word == '\0')
            continue;
        if (n == BAN_WORDS)
            return n + 1;
        words[n++] = word;
    }
    return n;
}

static int option_ban_parse_time(struct option_value *v, int64_t *out_ns, const char *word,
                                 int64_t max_ns, const char *what)
{
    if (parse_duration(out_ns, word, max_ns) < 0 || *out_ns < NS_PER_S)
        return option_refuse(v, "%s is not a %s", QUOTE_TEXT(word), what);
    return 0;
}

static int option_ban_parse(struct option_value *v, struct ban_conf *ban, char *text)
{
    char *words[BAN_WORDS];
    unsigned n = option_ban_split(words, text);
    uint64_t offences;
    int rc;

    if (n != BAN_WORDS || strcmp(words[BAN_AFTER], "after") != 0 ||
        strcmp(words[BAN_IN], "in") != 0)
        return option_refuse(v, "%s is not a rule DURATION after N in DURATION",
                             QUOTE_TEXT(v->text));
    rc = option_ban_parse_time(v, &ban->ban_ns, words[BAN_FOR], 365 * NS_PER_DAY,
                               "time to ban from 1s to 365d");
    if (rc == 0)
        rc = option_ban_parse_time(v, &ban->window_ns, words[BAN_WINDOW], NS_PER_DAY,
                                   "time to count from 1s to 1d");
    if (rc < 0)
        return rc;
    if (parse_uint(&offences, words[BAN_OFFENCES_WORD], BAN_OFFENCES_MAX) < 0 || offences == 0)
        return option_refuse(v, "%s is not a number of offences from 1 to %d",
                             QUOTE_TEXT(words[BAN_OFFENCES_WORD]), BAN_OFFENCES_MAX);
    ban->offences = (unsigned)offences;
    return 0;
}

static int option_ban_set(const struct option *o, struct option_value *v)
{
    struct ban_conf ban = {.offences = 0, .window_ns = NS_PER_S, .ban_ns = NS_PER_S};
    char *text = arena_text(v->arena, v->text, strlen(v->text));
    int rc = 0;

    if (!text)
        return -ENOMEM;
    if (strcmp(text, "0") != 0)
        rc = option_ban_parse(v, &ban, text);
    if (rc == 0)
        memcpy(option_field(o, v), &ban, sizeof(ban));
    return rc;
}

static int option_ban_set_exempt(const struct option *o, struct option_value *v)
{
    struct cidr_list *found = option_field(o, v), before = *found;
    int rc = option_proxy_trusted.set(o, v);

    for (unsigned i = 0; rc == 0 && i < found->n; i++)
        if (found->list[i].len == 0)
            rc = option_refuse(v, "'unix' is no block: clients of unix sockets are never banned");
        else if (found->list[i].bits == 0)
            rc = option_refuse(v, "a block of 0 bits exempts all clients: then leave out ban");
    if (rc < 0)
        *found = before;
    return rc;
}

const struct option_kind option_ban = {option_ban_set, "", 0, NULL};
const struct option_kind option_ban_exempt = {option_ban_set_exempt, "", 0, NULL};
