/*
 * ctl/ctl_value: kinds of words a user types: which are allowed, and which complete a word.
 */
#ifndef CTL_CTL_VALUE_H
#define CTL_CTL_VALUE_H

#include <stdint.h>

#include "base/clock.h"

enum ctl_value {
    CTL_VALUE_TEXT, /* any text, not empty; the daemon checks it */
    CTL_VALUE_LINE, /* words with blanks between them; the daemon checks them */
    CTL_VALUE_FILE,
    CTL_VALUE_ADDRESS,
    CTL_VALUE_COMMAND,
    CTL_VALUE_LISTENER,
    CTL_VALUE_LIMITS, /* NAME of a [limits NAME] */
    CTL_VALUE_UPSTREAM,
    CTL_VALUE_SERVER,   /* UPSTREAM/SERVER */
    CTL_VALUE_GROUP,    /* UPSTREAM or UPSTREAM/SERVER */
    CTL_VALUE_PAUSABLE, /* listener or upstream */
    CTL_VALUE_LOOP,
    CTL_VALUE_SESSION_ID,
    CTL_VALUE_SORT,
    CTL_VALUE_SETTING,
    CTL_VALUE_DURATION, /* 10s, more than 0 */
    CTL_VALUE_BYTES,
    CTL_VALUE_NUMBER,
    CTL_VALUE_PERCENT,
    CTL_VALUE_KINDS
};

/* Longest duration that is accepted; the daemon may allow less. */
#define CTL_VALUE_MAX_DURATION_NS (365 * NS_PER_DAY)

/*
 * ctl_value_check(kind, text):
 * Return NULL if ${text} is of ${kind}, else what is wrong, such as "is no duration such as 10s".
 */
const char *ctl_value_check(enum ctl_value kind, const char *text);

/*
 * ctl_value_words(kind):
 * Return the allowed words, ended by NULL; NULL: ${kind} has no fixed list.
 */
const char *const *ctl_value_words(enum ctl_value kind);

/*
 * ctl_value_ns(text) / ctl_value_number(kind, text):
 * Return a duration in ns / the value of bytes, a number or a percentage that ctl_value_check()
 * accepted.
 */
int64_t ctl_value_ns(const char *text);
int64_t ctl_value_number(enum ctl_value kind, const char *text);

#endif
