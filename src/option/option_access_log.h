/*
 * option/option_access_log: option kinds: access logs.
 */
#ifndef OPTION_OPTION_ACCESS_LOG_H
#define OPTION_OPTION_ACCESS_LOG_H

#include "option/option.h"

/* struct listener_access_log_conf: a target, or names of sections */
extern const struct option_kind option_access_log_list;

/* `off` and the targets that are words */
extern const struct option_word option_access_log_targets[];

extern const struct option_kind option_access_log_format; /* const struct access_log_format * */

#endif
