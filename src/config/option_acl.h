/*
 * config/option_acl: the kinds of values that say which clients come in.
 *
 * They set nothing: the order of the rules follows from several options, and from files that are
 * not read for one value (config/config_acl).
 */
#ifndef CONFIG_OPTION_ACL_H
#define CONFIG_OPTION_ACL_H

#include "config/option.h"

extern const struct option_kind option_access_list; /* blocks and file:/path, with commas between */
extern const struct option_kind option_access_file; /* an absolute path */

#endif
