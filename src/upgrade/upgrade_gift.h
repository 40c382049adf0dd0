/* upgrade/upgrade_gift: what a new process gets when it is started: descriptors, and the state. */
#ifndef UPGRADE_UPGRADE_GIFT_H
#define UPGRADE_UPGRADE_GIFT_H

#include <stdbool.h>

#include "base/must.h"
#include "upgrade/fd_store.h"

struct launch_descriptor;
struct listeners_descriptor;
struct upgrade_conf;

/* Descriptors for the new process; the last of `list` is a placeholder for the hand-over socket. */
struct upgrade_gift {
    struct listeners_descriptor *sockets;
    unsigned n_sockets;
    char (*names)[FD_STORE_NAME_BYTES];
    int state_fd, tickets_fd, bans_fd;
    struct launch_descriptor *list;
    unsigned n;
};

/*
 * upgrade_gift_open(g, conf) / upgrade_gift_close(g):
 * Collect all descriptors / free the list, and close those that were made for it; also after an
 * error.
 *
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int upgrade_gift_open(struct upgrade_gift *g, const struct upgrade_conf *conf) NODISCARD;
void upgrade_gift_close(struct upgrade_gift *g);

/*
 * upgrade_gift_write_state(conf, settings, out_fd):
 * Write the state to a memory file; with ${settings} also the administrator's settings and the
 * addresses of names, which after the take-over only the new process changes.
 *
 * Owns:   the caller owns ${out_fd}
 * Errors: as hand_over_write_state()
 */
int upgrade_gift_write_state(const struct upgrade_conf *conf, bool settings, int *out_fd) NODISCARD;

#endif
