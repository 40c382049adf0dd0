/*
 * config/option_access_log: option kind: access log format.
 */
#ifndef CONFIG_OPTION_ACCESS_LOG_H
#define CONFIG_OPTION_ACCESS_LOG_H

#include "config/option.h"

extern const struct option_kind option_access_log_format; /* const struct access_log_format * */

#endif
