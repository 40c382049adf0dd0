/*
 * config/option_acl: option kinds: access rules.
 *
 * They only validate: config/config_acl builds the rules from several options and files.
 */
#ifndef CONFIG_OPTION_ACL_H
#define CONFIG_OPTION_ACL_H

#include "config/option.h"

extern const struct option_kind option_access_list; /* blocks and file:/path, with commas between */
extern const struct option_kind option_access_file; /* an absolute path */

#endif
