/*
 * config/option_access_log: option kinds: access logs.
 */
#ifndef CONFIG_OPTION_ACCESS_LOG_H
#define CONFIG_OPTION_ACCESS_LOG_H

#include "config/option.h"

/* struct listener_access_log_conf: a target, or names of sections */
extern const struct option_kind option_access_log_list;

/* `off` and the targets that are words */
extern const struct option_word option_access_log_targets[];

extern const struct option_kind option_access_log_format; /* const struct access_log_format * */

#endif
