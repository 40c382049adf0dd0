/*
 * daemon/option_access_log: the kind of value that is the format of an access log.
 */
#ifndef DAEMON_OPTION_ACCESS_LOG_H
#define DAEMON_OPTION_ACCESS_LOG_H

#include "daemon/option.h"

extern const struct option_kind option_access_log_format; /* const struct access_log_format * */

#endif
