/*
 * option/option_acl: option kinds: access rules. They are only validated; config/config_acl reads
 * them.
 */
#ifndef OPTION_OPTION_ACL_H
#define OPTION_OPTION_ACL_H

#include "option/option.h"

/* Comma-separated blocks and file:/path. */
extern const struct option_kind option_access_deny;
extern const struct option_kind option_access_allow;
extern const struct option_kind option_access_file; /* an absolute path */

#endif
