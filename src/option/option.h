/*
 * option/option: table of all options.
 *
 * The rows (in option_process.c, option_listen.c and others) determine the syntax of the file, the
 * allowed values in errors, --dump-config and what a reload can change. tests/lint compares them
 * with the sample file and manual page. A new option needs a row, a field in its section's struct
 * (for sessions: service/service.h), and entries in sample and manual, in the table's order. `make
 * lint` names what is missing.
 */
#ifndef OPTION_OPTION_H
#define OPTION_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct arena;
struct option;
struct option_need;
struct option_value;

/* Kinds of sections, in the order of --dump-config for an empty file. */
enum option_section {
    OPTION_REACTORD,
    OPTION_BOSS,
    OPTION_WORKER,
    OPTION_EXECUTOR,
    OPTION_HANDSHAKE,
    OPTION_ADMIN,
    OPTION_LISTEN,
    OPTION_UPSTREAM,
    OPTION_TLS,
    OPTION_RESOLVER,
    OPTION_LIMITS,
    OPTION_ACCESS_LOG,
    OPTION_SECTIONS
};

enum {
    OPTION_REQUIRED = 1 << 0, /* no default */
    OPTION_EMPTY = 1 << 1,    /* may be empty: "not set", the default */
    OPTION_FAMILY = 1 << 2,   /* `server.ID`: any key starting with `server.` */
    OPTION_ZERO = 1 << 3,     /* 0 is allowed too, outside option.min to option.max */
    OPTION_SECRET = 1 << 4,   /* may have a password: a reload does not show its values */
    OPTION_SINGLE = 1 << 5    /* of one section only: not in a [defaults KIND] */
};

/* What a reload does with a changed value. */
enum option_applies {
    OPTION_LIVE,            /* used for new and open connections */
    OPTION_NEW_CONNECTIONS, /* open connections keep the old value */
    OPTION_UPGRADE          /* only an upgrade can change it: the reload is refused */
};

/* What a reload compares when the value has not changed. */
struct option_content {
    /* Is the content that ${o} names the same in ${from} and ${to}, structs of its section? */
    bool (*same)(const struct option *o, const void *from, const void *to);
    size_t (*rules)(const struct option *o, const void *conf); /* their number; NULL: no rules */
    const char *changed; /* what a reload logs of content without rules */
};

struct option_kind {
    /* Parses a non-empty value; see option_set(). */
    int (*set)(const struct option *o, struct option_value *v);
    const char *units; /* shown after option.allowed, or "" */
    size_t bytes;      /* size of the field, to compare values; 0: compare their texts */
    const struct option_content *content; /* of the files that the value names, or NULL */
};

struct option_word {
    const char *word; /* NULL ends a list */
    unsigned value;
};

struct option {
    const char *key;
    const struct option_kind *kind;
    unsigned flags;
    enum option_applies applies;
    const char *fallback; /* default, as text; NULL with OPTION_REQUIRED */
    const char *allowed;  /* allowed values, for errors and the manual page */
    const char *help;
    size_t offset;                   /* place of the field in the section's struct */
    int64_t min, max;                /* durations in ns */
    const struct option_word *words; /* for enumerations */
    const struct option_need *need;  /* what the option depends on; NULL: nothing */
};

#define OPTION_PROBLEM_BYTES 2048

struct option_value {
    const char *key; /* as in the file, in lower case; of a family: `server.ID` */
    const char *text;
    void *conf;
    struct arena *arena;
    char problem[OPTION_PROBLEM_BYTES]; /* one a line */
    bool foreign;                       /* a problem is a word of another program */
};

/* option_row(section, i): return row ${i} of a section; NULL: it has no more. */
const struct option *option_row(enum option_section section, unsigned i);

/* option_find(section, key): return the row of ${key} or of its family, or NULL. */
const struct option *option_find(enum option_section section, const char *key);

/* option_matches(o, key): is ${key} the key of ${o}, or in its family? */
bool option_matches(const struct option *o, const char *key);

/* option_member(o, key): return the `ID` in ${key}, a key of the family ${o}. */
const char *option_member(const struct option *o, const char *key);

/* option_applies_text(applies): return `live`, `new connections` or `upgrade`. */
const char *option_applies_text(enum option_applies applies);

/*
 * option_section_name(section) / option_section_title(section):
 * Return `listen` / return `[listen NAME]`.
 */
const char *option_section_name(enum option_section section);
const char *option_section_title(enum option_section section);

/* option_section_named(section): do sections of this kind have names, so that there can be many? */
bool option_section_named(enum option_section section);

/*
 * option_set(o, v):
 * Parse ${v}->text into ${v}->conf.
 *
 * Thread: as config_reload()
 * Owns:   ${v}->key and ${v}->text must live as long as ${v}->arena
 * Errors: 0; -EINVAL (see ${v}->problem; ${v}->conf is unchanged); -ENOMEM
 */
int option_set(const struct option *o, struct option_value *v) NODISCARD;

/* option_field(o, v): return the field to set, for option_kind.set. */
static inline void *option_field(const struct option *o, const struct option_value *v)
{
    return (char *)v->conf + o->offset;
}

/* option_refuse(v, format, ...): set ${v}->problem and return -EINVAL, for option_kind.set. */
int option_refuse(struct option_value *v, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
