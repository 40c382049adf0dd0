/*
 * upgrade/inherited: the listen sockets that this process was started with (LISTEN_FDS,
 * LISTEN_FDNAMES).
 *
 * They come from a .socket unit, from systemd's file descriptor store, or from the process that
 * this one replaces.
 */
#ifndef UPGRADE_INHERITED_H
#define UPGRADE_INHERITED_H

#include <stdbool.h>

#include "base/must.h"
#include "net/address.h"
#include "net/sock.h"

struct inherited_socket {
    int fd;                 /* -1: closed, or taken by another module */
    struct address address; /* all 0: the socket cannot be used */
    struct sock_own_file file;
    bool unwanted; /* closed here, but the service manager may still store it */
    char *name;    /* name in LISTEN_FDNAMES */
};

/*
 * inherited_read(out, n):
 * Return the listening stream sockets of LISTEN_FDS, and unset these variables. Descriptors of
 * upgrade/predecessors stay open. Others are closed, and logged unless they are duplicates.
 *
 * Thread: main, before any other thread
 * Owns:   the caller owns the array: inherited_free()
 * Errors: 0; -ENOMEM
 * Source: sd_listen_fds(3)
 */
int inherited_read(struct inherited_socket **out, unsigned *n) NODISCARD;

/* inherited_close(s): close the open socket ${s}, and mark it as unwanted. */
void inherited_close(struct inherited_socket *s);

/* inherited_free(sockets, n): close the open sockets and free the array. */
void inherited_free(struct inherited_socket *sockets, unsigned n);

#endif
