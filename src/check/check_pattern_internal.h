/* check/check_pattern_internal: shared by check_pattern.c and check_pattern_search.c. */
#ifndef CHECK_CHECK_PATTERN_INTERNAL_H
#define CHECK_CHECK_PATTERN_INTERNAL_H

#include "check/check_pattern.h"

#define CHECK_PATTERN_BYTES 256

struct check_pattern {
    unsigned n; /* positions */
    struct check_pattern_set first, last;
    struct check_pattern_set line_starts;                  /* `^`: read no byte */
    struct check_pattern_set by_byte[CHECK_PATTERN_BYTES]; /* positions that read this byte */
    struct check_pattern_set *follow;                      /* positions behind each position */
};

/* check_pattern_join(s, other): add ${other} to ${s}. */
static inline void check_pattern_join(struct check_pattern_set *s,
                                      const struct check_pattern_set *other)
{
    for (unsigned i = 0; i < CHECK_PATTERN_WORDS; i++)
        s->words[i] |= other->words[i];
}

/* check_pattern_meets(a, b): do they have a position in common? */
static inline bool check_pattern_meets(const struct check_pattern_set *a,
                                       const struct check_pattern_set *b)
{
    for (unsigned i = 0; i < CHECK_PATTERN_WORDS; i++)
        if (a->words[i] & b->words[i])
            return true;
    return false;
}

#endif
