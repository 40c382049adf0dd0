#include "stats/session_id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"

#define SESSION_ID_HALF 16 /* hex digits */

/* Next ID of this thread, `low` before hash_mix(); `high` 0: not seeded yet. */
static _Thread_local struct session_id session_id_next;

/* Seed at random; without entropy (at boot), from address and time. */
static void session_id_seed(struct session_id *next)
{
    if (getrandom(next, sizeof(*next), GRND_NONBLOCK) != (ssize_t)sizeof(*next)) {
        next->high = hash_mix((uintptr_t)next ^ (uint64_t)clock_now_ns());
        next->low = hash_mix(next->high);
    }
    next->high |= 1; /* never 0 */
}

void session_id_make(struct session_id *out)
{
    struct session_id *next = &session_id_next;

    if (next->high == 0)
        session_id_seed(next);
    out->high = next->high;
    out->low = hash_mix(next->low++);
}

static int session_id_parse_half(uint64_t *out, const char *text)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < SESSION_ID_HALF; i++) {
        char c = text[i];

        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return -EINVAL;
    }
    *out = value;
    return 0;
}

int session_id_parse(struct session_id *out, const char *text)
{
    struct session_id id;

    if (strlen(text) != SESSION_ID_TEXT_BYTES - 1 || session_id_parse_half(&id.high, text) < 0 ||
        session_id_parse_half(&id.low, text + SESSION_ID_HALF) < 0)
        return -EINVAL;
    *out = id;
    return 0;
}

const char *session_id_format(char *text, const struct session_id *id)
{
    snprintf(text, SESSION_ID_TEXT_BYTES, "%016" PRIx64 "%016" PRIx64, id->high, id->low);
    return text;
}
