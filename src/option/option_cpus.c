#include "option/option_cpus.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "server/server_conf.h"

#define BLANKS " \t"

_Static_assert(OPTION_CPUS_MAX == CPU_SETSIZE - 1, "the processors of a cpu_set_t");

struct numbers {
    unsigned list[OPTION_CPUS_MAX + 1];
    unsigned n;
    bool listed[OPTION_CPUS_MAX + 1];
};

static int option_cpus_parse_number(struct option_value *v, uint64_t *out, const char *word)
{
    switch (parse_uint(out, word, OPTION_CPUS_MAX)) {
    case 0: return 0;
    case -ERANGE:
        return option_refuse(v, "%s is above %d, the highest processor number", QUOTE_TEXT(word),
                             OPTION_CPUS_MAX);
    default: return option_refuse(v, "%s is not a processor number", QUOTE_TEXT(word));
    }
}

static int option_cpus_add_range(struct option_value *v, struct numbers *numbers, uint64_t first,
                                 uint64_t last)
{
    for (uint64_t cpu = first; cpu <= last; cpu++) {
        if (numbers->listed[cpu])
            return option_refuse(v, "processor %u is given twice", (unsigned)cpu);
        numbers->listed[cpu] = true;
        numbers->list[numbers->n++] = (unsigned)cpu;
    }
    return 0;
}

/* Add the processors of `N` or `N-M`; modifies ${item}. */
static int option_cpus_add_item(struct option_value *v, struct numbers *numbers, char *item)
{
    char *last_word = strchr(item, '-');
    uint64_t first, last;
    int rc;

    if (*item == '\0')
        return option_refuse(v, "a processor is missing beside a comma");
    if (last_word)
        *last_word++ = '\0';
    rc = option_cpus_parse_number(v, &first, item);
    if (rc < 0)
        return rc;
    last = first;
    if (last_word)
        rc = option_cpus_parse_number(v, &last, last_word);
    if (rc < 0)
        return rc;
    if (last < first)
        return option_refuse(v, "the range %u-%u goes down", (unsigned)first, (unsigned)last);
    return option_cpus_add_range(v, numbers, first, last);
}

static int option_cpus_set_list(struct option_value *v, struct server_cpus *cpus)
{
    struct numbers numbers = {.n = 0};
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    unsigned *kept;

    if (!list)
        return -ENOMEM;
    while (list) {
        int rc = option_cpus_add_item(v, &numbers, option_kind_next_item(&list));

        if (rc < 0)
            return rc;
    }
    kept = arena_alloc(v->arena, numbers.n, sizeof(*kept));
    if (!kept)
        return -ENOMEM;
    memcpy(kept, numbers.list, numbers.n * sizeof(*kept));
    *cpus = (struct server_cpus){
        .affinity = SERVER_AFFINITY_LIST,
        .list = kept,
        .n = numbers.n,
    };
    return 0;
}

static int option_cpus_set_affinity(const struct option *o, struct option_value *v)
{
    struct server_cpus *cpus = option_field(o, v);
    const struct option_word *w;

    if (isdigit((unsigned char)v->text[strspn(v->text, BLANKS)]))
        return option_cpus_set_list(v, cpus);
    w = option_kind_find_word(o, v);
    if (!w)
        return -EINVAL;
    *cpus = (struct server_cpus){.affinity = (enum server_affinity)w->value};
    return 0;
}

const struct option_kind option_cpus_affinity = {option_cpus_set_affinity, "", 0, NULL};
