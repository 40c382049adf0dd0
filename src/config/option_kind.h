/*
 * config/option_kind: the kinds of plain values: numbers, words and names.
 *
 * Each says what it stores at option.offset. See option.h for the contract of option_kind.set.
 */
#ifndef CONFIG_OPTION_KIND_H
#define CONFIG_OPTION_KIND_H

#include <stdbool.h>

#include "config/option.h"

/* The longest name of a section, an upstream or a server. */
#define OPTION_KIND_NAME_BYTES 32

extern const struct option_kind option_kind_number;    /* unsigned, from option.min to option.max */
extern const struct option_kind option_kind_percent;   /* unsigned, likewise, with or without '%' */
extern const struct option_kind option_kind_duration;  /* int64_t ns, likewise */
extern const struct option_kind option_kind_size;      /* unsigned bytes, likewise */
extern const struct option_kind option_kind_size_long; /* uint64_t bytes, likewise */
extern const struct option_kind option_kind_bool;      /* bool, as parse_bool() */
extern const struct option_kind option_kind_word;      /* an enum, by option.words */
extern const struct option_kind
    option_kind_account; /* const char *: a user's or group's name or number */
extern const struct option_kind option_kind_path; /* const char *: absolute, of a file */
extern const struct option_kind option_kind_log;  /* const char *: one of option.words, or a path */
extern const struct option_kind option_kind_name; /* const char *: a section's, in lower case */

/*
 * option_kind_find_word(o, v):
 * The row of option.words that ${v}->text is. If it is none, ${v}->problem names the nearest.
 *
 * Thread: before start
 * Errors: NULL (${v}->problem is filled)
 */
const struct option_word *option_kind_find_word(const struct option *o, struct option_value *v);

/*
 * option_kind_next_item(list):
 * The next item of a list with commas, without the blanks around it; *${list} goes behind it, and
 * is NULL after the last one.
 *
 * Thread: any
 * Owns:   nothing; the text of the list is changed
 * Errors: none; an item may be empty
 */
char *option_kind_next_item(char **list);

/*
 * option_kind_is_name(text):
 * Is it 1 to OPTION_KIND_NAME_BYTES letters, digits, '_', '.' and '-'?
 *
 * Thread: any
 */
bool option_kind_is_name(const char *text);

#endif
