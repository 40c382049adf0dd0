#include "option/option_threads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "server/server_conf.h"

#define BLANKS " \t"

static const char option_threads_auto[] = "auto";

static int option_threads_parse(const struct option *o, struct option_value *v, const char *word,
                                uint64_t *out)
{
    int rc = parse_uint(out, word, (uint64_t)o->max);

    if (rc == -EINVAL)
        return option_refuse(v, "%s is not auto N-M, with plain decimal numbers",
                             QUOTE_TEXT(v->text));
    if (rc < 0 || *out == 0)
        return option_refuse(v, "%s is out of range: limits are from 1 to %lld",
                             QUOTE_TEXT(v->text), (long long)o->max);
    return 0;
}

/* Set the limits ${text}, `N-M`. */
static int option_threads_set_limits(const struct option *o, struct option_value *v,
                                     const char *text, struct server_workers_conf *threads)
{
    const char *dash = strchr(text, '-');
    char first[sizeof("4294967295")];
    uint64_t min, max;
    int rc;

    snprintf(first, sizeof(first), "%.*s", dash ? (int)(dash - text) : 0, text);
    rc = option_threads_parse(o, v, first, &min);
    if (rc == 0)
        rc = option_threads_parse(o, v, dash ? dash + 1 : "", &max);
    if (rc < 0)
        return rc;
    if (max < min)
        return option_refuse(v, "%s goes down", QUOTE_TEXT(v->text));
    *threads = (struct server_workers_conf){.min = (unsigned)min, .max = (unsigned)max};
    return 0;
}

static int option_threads_set(const struct option *o, struct option_value *v)
{
    const size_t len = sizeof(option_threads_auto) - 1;
    struct server_workers_conf *threads = option_field(o, v);
    const char *text = v->text;

    if (strncmp(text, option_threads_auto, len) != 0) {
        *threads = (struct server_workers_conf){.n = 0};
        return option_kind_number.set(o, v);
    }
    text += len + strspn(text + len, BLANKS);
    if (*text != '\0' && text > v->text + len)
        return option_threads_set_limits(o, v, text, threads);
    if (*text != '\0')
        return option_refuse(v, "%s is not auto N-M", QUOTE_TEXT(v->text));
    *threads = (struct server_workers_conf){.min = 1};
    return 0;
}

const struct option_kind option_threads_workers = {option_threads_set, "",
                                                   sizeof(struct server_workers_conf), NULL};
