/*
 * config/option: every option there is, one row each.
 *
 * The table (config/option_process.c, option_listen.c, option_upstream.c) decides what a
 * configuration file may say, what its errors name as allowed, what --dump-config writes, and (by
 * tests/lint) what the sample file and the manual page must have. A new option is a row here and a
 * field in the struct of its section; a new kind of value is a function in config/option_kind,
 * config/option_network, config/option_socket or config/option_cpus.
 */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct arena;
struct option;
struct option_value;

/* The kinds of section; the order is that of a file that has none of its own. */
enum option_section {
    OPTION_REACTORD,
    OPTION_BOSS,
    OPTION_WORKER,
    OPTION_EXECUTOR,
    OPTION_LISTEN,
    OPTION_UPSTREAM,
    OPTION_SECTIONS
};

enum {
    OPTION_REQUIRED = 1 << 0, /* has no default */
    OPTION_EMPTY = 1 << 1,    /* an empty value is the default, and means "not set" */
    OPTION_FAMILY = 1 << 2,   /* `server.ID` stands for many keys, all that begin with `server.` */
    OPTION_ZERO = 1 << 3      /* 0 is allowed besides option.min to option.max */
};

/* A kind of value: how its text becomes the field. */
struct option_kind {
    /*
     * Convert ${v}->text into the field(s) of ${o} in ${v}->conf. 0; -EINVAL with ${v}->problem
     * filled and nothing changed; -ENOMEM. The text outlives the configuration. Thread: before
     * start.
     */
    int (*set)(const struct option *o, struct option_value *v);
    const char *units; /* what an error adds to option.allowed; "" if nothing */
};

struct option_word {
    const char *word; /* the last of a list is NULL */
    unsigned value;
};

struct option {
    const char *key;
    const struct option_kind *kind;
    unsigned flags;
    const char *
        fallback; /* the default as it would be written; "" when OPTION_EMPTY, NULL when required */
    const char *allowed; /* as errors and the manual page show it */
    const char *help;
    size_t offset;                   /* of the field in the struct of the section */
    int64_t min, max;                /* for numbers; ns for durations */
    const struct option_word *words; /* for enumerations */
};

#define OPTION_PROBLEM_BYTES 2048

/* One conversion: what is to be set, where, and what was wrong with it. */
struct option_value {
    const char *key; /* as in the file, in lower case; differs from option.key for a family */
    const char *text;
    void *conf;
    struct arena *arena;
    char problem[OPTION_PROBLEM_BYTES];
};

/*
 * option_table(section, n):
 * The rows of a section, ${n} of them.
 *
 * Thread: any
 */
const struct option *option_table(enum option_section section, unsigned *n);

/*
 * option_find(section, key):
 * The row of ${key}, or of the family it belongs to; NULL if there is none.
 *
 * Thread: any
 * Errors: NULL
 */
const struct option *option_find(enum option_section section, const char *key);

/*
 * option_matches(o, key):
 * Is ${key} the key of ${o}, or one of its family?
 *
 * Thread: any
 */
bool option_matches(const struct option *o, const char *key);

/*
 * option_member(o, key):
 * What ${key} has where a family's own key has `ID`.
 *
 * Thread: any
 * Owns:   nothing; points into ${key}
 */
const char *option_member(const struct option *o, const char *key);

/*
 * option_section_name(section) / option_section_title(section):
 * The word a section's line begins with (`listen`), and how that line looks (`[listen NAME]`).
 *
 * Thread: any
 */
const char *option_section_name(enum option_section section);
const char *option_section_title(enum option_section section);

/*
 * option_section_named(section):
 * Has a section of this kind a name of its own, so that there can be many?
 *
 * Thread: any
 */
bool option_section_named(enum option_section section);

/*
 * option_set(o, v):
 * Convert ${v}->text and store it in ${v}->conf.
 *
 * Thread: before start
 * Owns:   ${v}->text must outlive the configuration; what else is needed is taken from ${v}->arena
 * Errors: 0; -EINVAL (${v}->problem says what is wrong, without what is allowed; ${v}->conf is
 *         unchanged); -ENOMEM
 */
int option_set(const struct option *o, struct option_value *v) NODISCARD;

/*
 * option_field(o, v):
 * For an option_kind: the field of ${o} that it has to fill.
 *
 * Thread: before start
 */
static inline void *option_field(const struct option *o, const struct option_value *v)
{
    return (char *)v->conf + o->offset;
}

/*
 * option_refuse(v, format, ...):
 * For an option_kind: fill ${v}->problem. Always -EINVAL.
 *
 * Thread: before start
 * Errors: -EINVAL
 */
int option_refuse(struct option_value *v, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
