/*
 * daemon/log_target: where log lines end up: stderr, a file, syslog or the systemd journal.
 *
 *   stderr    plain lines; those of the journal when stderr is connected to it (JOURNAL_STREAM)
 *   /path     plain lines
 *   syslog    facility daemon, local time
 *   journal   fields, with the thread in REACTORD_THREAD
 *
 * A line (daemon/log_line) is one system call and none waits: what the other end does not take at
 * once (a full disk, a full pipe, a reader that is gone) is lost and counted, and the count is
 * logged when lines go through again. Or, log_target_put_lines(), the caller is told and keeps
 * them.
 */
#ifndef DAEMON_LOG_TARGET_H
#define DAEMON_LOG_TARGET_H

#include <sys/types.h>

#include "base/log.h"
#include "base/must.h"

struct log_target;
struct privileges;

/*
 * log_target_open(out, where, user):
 * Open ${where}: "stderr", "syslog", "journal" or an absolute path. A file that does not exist is
 * created with mode 0640 and belongs to ${user}, which reopens it later (daemon/safe_open); NULL:
 * the process's own user.
 *
 * Thread: main, before any other thread
 * Owns:   ${where} is copied; ${user} must live as long as the target
 * Errors: 0; -ENOMEM; as safe_open(); -errno of connect(2) to the socket of syslog or the journal
 */
int log_target_open(struct log_target **out, const char *where,
                    const struct privileges *user) NODISCARD;

/*
 * log_target_sink(lt):
 * What log_set_sink() takes; it lives as long as ${lt}.
 *
 * Thread: any
 */
const struct log_sink *log_target_sink(const struct log_target *lt);

/*
 * log_target_put_lines(lt, lines, len):
 * Write as much of the ${len} bytes of whole lines as goes now: to a file all of it, to what others
 * write to as well, as a pipe, in pieces that keep lines whole, and to syslog and the journal a
 * message a line. The text is sent as it is.
 *
 * Thread: any; one at a time for what keeps its lines in order
 * Units:  bytes
 * Errors: bytes written, > 0; -EAGAIN (it would have to wait); -errno of write(2) or send(2)
 */
ssize_t log_target_put_lines(struct log_target *lt, const char *lines, size_t len) NODISCARD;

/*
 * log_target_reopen(lt):
 * Open the file at the path anew, after it was rotated; the descriptor keeps its number, so that
 * threads log on without a lock. Nothing to do for the other targets.
 *
 * Thread: main
 * Errors: 0; -errno of open(2) (the old file stays in use)
 */
int log_target_reopen(struct log_target *lt) NODISCARD;

/*
 * log_target_close(lt):
 * Close and free; log lines that went there go to stderr again. NULL is allowed.
 *
 * Thread: main, after every other thread has ended
 */
void log_target_close(struct log_target *lt);

#endif
