/*
 * option/option_rate: option kind: rate limit: `100/s`, `10/m burst=3`.
 */
#ifndef OPTION_OPTION_RATE_H
#define OPTION_OPTION_RATE_H

#include "option/option.h"

/* Maximum of number and burst. */
#define OPTION_RATE_MAX 1000000

/*
 * struct token_bucket_conf: 0, or 1 to OPTION_RATE_MAX per second, minute or hour. Default burst:
 * what the rate allows in a tenth of a second, at least 1.
 */
extern const struct option_kind option_rate;

#endif
