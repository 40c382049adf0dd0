#include "tls/tls_sections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/ref.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"

struct tls_section {
    char *name;
    struct tls_slot *slot;
};

struct tls_sections {
    struct ref references;
    unsigned n;
    struct tls_section list[];
};

int tls_sections_create(struct tls_sections **out, const char *const *names,
                        struct tls_slot *const *slots, unsigned n)
{
    struct tls_sections *ts = calloc(1, sizeof(*ts) + n * sizeof(ts->list[0]));

    if (!ts)
        return -ENOMEM;
    MUST(n > 0);
    ref_init(&ts->references);
    for (; ts->n < n; ts->n++) {
        struct tls_section *section = &ts->list[ts->n];

        section->name = strdup(names[ts->n]);
        if (!section->name) {
            tls_sections_release(ts);
            return -ENOMEM;
        }
        section->slot = tls_slot_hold(slots[ts->n]);
    }
    *out = ts;
    return 0;
}

struct tls_sections *tls_sections_hold(struct tls_sections *ts)
{
    ref_hold(&ts->references);
    return ts;
}

void tls_sections_release(struct tls_sections *ts)
{
    if (!ts || !ref_release(&ts->references))
        return;
    for (unsigned i = 0; i < ts->n; i++) {
        free(ts->list[i].name);
        tls_slot_release(ts->list[i].slot);
    }
    free(ts);
}

struct tls_profile *tls_sections_choose(struct tls_sections *ts, const char *sni,
                                        const char **section)
{
    struct tls_profile *chosen = tls_slot_current(ts->list[0].slot);
    enum tls_match best = ts->n > 1 ? tls_profile_match(chosen, sni) : TLS_MATCH_EXACT;

    *section = ts->list[0].name;
    for (unsigned i = 1; i < ts->n && best < TLS_MATCH_EXACT; i++) {
        struct tls_profile *other = tls_slot_current(ts->list[i].slot);
        enum tls_match match = tls_profile_match(other, sni);

        if (match > best) {
            tls_profile_release(chosen);
            chosen = other;
            best = match;
            *section = ts->list[i].name;
        } else {
            tls_profile_release(other);
        }
    }
    return chosen;
}
