#include "stats/session_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"

/* This thread's next ID, before hash_mix(); high 0: not seeded. */
static _Thread_local struct session_id session_id_next;

/* Without entropy at boot, address and time must do. */
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

const char *session_id_format(char *text, const struct session_id *id)
{
    snprintf(text, SESSION_ID_TEXT_BYTES, "%016" PRIx64 "%016" PRIx64, id->high, id->low);
    return text;
}
