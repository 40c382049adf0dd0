/*
 * ctl/ctl_token: the token of an admin interface on TCP, from a file.
 */
#ifndef CTL_CTL_TOKEN_H
#define CTL_CTL_TOKEN_H

#include "base/must.h"

/*
 * ctl_token_read(out, path):
 * Read the token, without white space at its end; report what is wrong.
 *
 * Owns:   the caller frees ${out}
 * Errors: 0; -errno (unreadable); -EINVAL (no token)
 */
int ctl_token_read(char **out, const char *path) NODISCARD;

#endif
