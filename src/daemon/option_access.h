/*
 * daemon/option_access: the kinds of values that say which clients come in.
 *
 * They set nothing: the order of the rules follows from several options, and from files that are not read for one value
 * (daemon/config_access).
 */
#ifndef DAEMON_OPTION_ACCESS_H
#define DAEMON_OPTION_ACCESS_H

#include "daemon/option.h"

extern const struct option_kind option_access_list; /* blocks and file:/path, with commas between */
extern const struct option_kind option_access_file; /* an absolute path */

#endif
