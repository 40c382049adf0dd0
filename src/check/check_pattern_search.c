/* check/check_pattern_search: simulates a compiled expression. See check/check_pattern.h. */
#include "check/check_pattern_internal.h"

/* Join to ${s} the sets of ${list} that the positions in ${of} have. */
static void check_pattern_join_each(struct check_pattern_set *s, const struct check_pattern_set *of,
                                    const struct check_pattern_set *list)
{
    for (unsigned i = 0; i < CHECK_PATTERN_WORDS; i++)
        for (uint64_t left = of->words[i]; left != 0; left &= left - 1)
            check_pattern_join(s, &list[64 * i + (unsigned)__builtin_ctzll(left)]);
}

/* The positions that may read the next byte. */
static struct check_pattern_set check_pattern_nexts(const struct check_pattern *p,
                                                    const struct check_pattern_set *set)
{
    struct check_pattern_set next = p->first;

    check_pattern_join_each(&next, set, p->follow);
    return next;
}

static void check_pattern_start_line(const struct check_pattern *p, struct check_pattern_set *set)
{
    struct check_pattern_set next = check_pattern_nexts(p, set);

    for (unsigned i = 0; i < CHECK_PATTERN_WORDS; i++)
        set->words[i] |= next.words[i] & p->line_starts.words[i];
}

void check_pattern_begin(const struct check_pattern *p, struct check_pattern_set *set,
                         bool at_line_start)
{
    *set = (struct check_pattern_set){{0}};
    if (at_line_start)
        check_pattern_start_line(p, set);
}

bool check_pattern_next(const struct check_pattern *p, struct check_pattern_set *set, uint8_t byte)
{
    struct check_pattern_set next = check_pattern_nexts(p, set);
    bool has_matched;

    for (unsigned i = 0; i < CHECK_PATTERN_WORDS; i++)
        set->words[i] = next.words[i] & p->by_byte[byte].words[i];
    has_matched = check_pattern_meets(set, &p->last);
    if (byte == '\n')
        check_pattern_start_line(p, set);
    return has_matched;
}

bool check_pattern_is_begun(const struct check_pattern_set *set)
{
    for (unsigned i = 0; i < CHECK_PATTERN_WORDS; i++)
        if (set->words[i])
            return true;
    return false;
}
