/*
 * option/option_kind: option kinds: numbers, words, names. Each kind stores its value at
 * option.offset.
 */
#ifndef OPTION_OPTION_KIND_H
#define OPTION_OPTION_KIND_H

#include <stdbool.h>

#include "option/option.h"

/* Maximum length of a section, upstream or server name. */
#define OPTION_KIND_NAME_BYTES 32

extern const struct option_kind option_kind_number;         /* unsigned, option.min to option.max */
extern const struct option_kind option_kind_number_or_word; /* unsigned, or one of option.words */
extern const struct option_kind option_kind_percent;        /* a number, optional '%' */
extern const struct option_kind option_kind_percent_or_word;
extern const struct option_kind option_kind_duration;          /* int64_t ns */
extern const struct option_kind option_kind_duration_or_never; /* the same, or CLOCK_NEVER */
extern const struct option_kind option_kind_size;              /* unsigned bytes */
extern const struct option_kind option_kind_size_long;         /* uint64_t bytes */
extern const struct option_kind option_kind_bool;              /* bool, as parse_bool() */
extern const struct option_kind option_kind_word;              /* enum, by option.words */
extern const struct option_kind
    option_kind_account;                          /* const char *: user or group, name or number */
extern const struct option_kind option_kind_path; /* const char *: absolute path */
extern const struct option_kind option_kind_name; /* const char *: name of a section, lower case */

/*
 * option_kind_find_word(o, v):
 * Return the row of ${v}->text in option.words; NULL: unknown, and ${v}->problem suggests the
 * nearest word.
 */
const struct option_word *option_kind_find_word(const struct option *o, struct option_value *v);

/*
 * option_kind_next_item(list):
 * Return the next item of a comma-separated list, trimmed and perhaps empty. Set *${list} to the
 * items after it, or NULL.
 */
char *option_kind_next_item(char **list);

/*
 * option_kind_is_name(text):
 * Is ${text} 1 to OPTION_KIND_NAME_BYTES letters, digits, '_', '.' and '-'?
 */
bool option_kind_is_name(const char *text);

/* option_kind_lower(name): make ${name}, of a section, lower case, which is how it is found. */
void option_kind_lower(char *name);

/* Names of sections in a value, without repetitions. */
struct option_names {
    const char **list; /* of `max` */
    unsigned n, max;
};

/*
 * option_kind_add_name(names, v, name):
 * Add ${name}, an item of ${v}, in lower case.
 *
 * Owns:   ${names} points to ${name}, which is changed
 * Errors: 0; -EINVAL (see ${v}->problem)
 */
int option_kind_add_name(struct option_names *names, struct option_value *v, char *name) NODISCARD;

#endif
