/*
 * daemon/start_config: the configuration at start, and the change of the root directory.
 *
 * With `chroot` the file is read twice: first to know the directory, then inside it, as by a
 * reload. All configured paths are in the new root directory, even those used at start.
 */
#ifndef DAEMON_START_CONFIG_H
#define DAEMON_START_CONFIG_H

#include "base/must.h"

struct config;
struct predecessors;
struct privileges;

/*
 * start_config_load(out, path, p):
 * Load ${path}. Problems go to stderr, and to the starter of ${p}, if any.
 *
 * Thread: main, before any other thread
 * Owns:   ${p} may be NULL
 * Errors: as config_load()
 */
int start_config_load(struct config **out, const char *path, struct predecessors *p) NODISCARD;

/*
 * start_config_enter(config, path, user):
 * Set the groups of ${user} (privileges_keep_groups()), then change the root directory to that of
 * ${config}. Failures are logged.
 *
 * Thread: main, as root, before any other thread
 * Errors: 0; -EINVAL (${path} is relative); -EPERM (not root); -ENOENT (systemd's socket
 *         is missing there); -errno of chroot(2)
 */
int start_config_enter(const struct config *config, const char *path,
                       struct privileges *user) NODISCARD;

/*
 * start_config_replace(config, path, p):
 * Load ${path} again in the new root directory, and free the previous configuration.
 *
 * Thread: main, after start_config_enter()
 * Errors: as config_load(); -EINVAL (another user, group or chroot)
 */
int start_config_replace(struct config **config, const char *path,
                         struct predecessors *p) NODISCARD;

#endif
