/*
 * upgrade/ban_files: hands bans to the process that replaces this one, in memory files of their
 * own: all bans at its start, and right before "main" those that began since.
 *
 *   old: ban_files_lend() -> ban_files_send()      new: ban_files_use() of each
 */
#ifndef UPGRADE_BAN_FILES_H
#define UPGRADE_BAN_FILES_H

#include <stdint.h>

struct server;
struct successor;

/* ban_files_lend(sv): write all bans to a new memory file; -1: none, or a failure, logged. */
int ban_files_lend(struct server *sv);

/* ban_files_send(sv, s, since_ns): send ${s} the bans that began at ${since_ns} or later. */
void ban_files_send(struct server *sv, struct successor *s, int64_t since_ns);

/* ban_files_use(sv, fd): add the bans of the memory file ${fd}; -1: none. Failures are logged. */
void ban_files_use(struct server *sv, int fd);

#endif
