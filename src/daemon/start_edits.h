/* daemon/start_edits: servers that an administrator added and removed in the process before. */
#ifndef DAEMON_START_EDITS_H
#define DAEMON_START_EDITS_H

struct config;

/*
 * start_edits_use(config, notes) / start_edits_log(notes):
 * Apply the edits in the state that this process was started with, if any, to ${*config} / log what
 * became of them, when the log is open.
 *
 * Owns:   ${*config} is freed if it is replaced; the caller frees ${notes}, which may be NULL
 */
void start_edits_use(struct config **config, char **notes);
void start_edits_log(char *notes);

#endif
