/* handover/server_upgrade: hands listen sockets over when a new process replaces an old one. */
#ifndef HANDOVER_SERVER_UPGRADE_H
#define HANDOVER_SERVER_UPGRADE_H

#include "base/must.h"

struct listeners_descriptor;
struct server;

/*
 * server_upgrade_descriptors(sv, out, n):
 * List the listen sockets in use, as listeners_descriptors().
 *
 * Thread: main, while no reload is under way
 * Owns, Errors: as listeners_descriptors()
 */
int server_upgrade_descriptors(struct server *sv, struct listeners_descriptor **out,
                               unsigned *n) NODISCARD;

/*
 * server_upgrade_leave(sv) / server_upgrade_close(sv):
 * As server_drain(), but leave the sockets and their files to the other process that accepts from
 * them / only leave the sockets. Both are idempotent.
 *
 * Thread: main
 */
void server_upgrade_leave(struct server *sv);
void server_upgrade_close(struct server *sv);

/*
 * server_upgrade_keep(sv):
 * Take over the listen sockets, as listeners_keep().
 *
 * Thread: main, while no reload is under way
 */
void server_upgrade_keep(struct server *sv);

#endif
