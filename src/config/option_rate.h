/*
 * config/option_rate: the kind of value that says how often something may happen: `100/s`, `10/m
 * burst=3`.
 *
 * See option.h for the contract of option_kind.set.
 */
#ifndef CONFIG_OPTION_RATE_H
#define CONFIG_OPTION_RATE_H

#include "config/option.h"

/* The largest number and burst. */
#define OPTION_RATE_MAX 1000000

/*
 * struct token_bucket_conf: 0, or a number from 1 to OPTION_RATE_MAX a second, minute or hour.
 * Without a burst it is what comes in a tenth of a second, and at least 1.
 */
extern const struct option_kind option_rate;

#endif
