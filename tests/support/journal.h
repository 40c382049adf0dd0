/*
 * support/journal: the journal of a service manager, as a stream at stderr.
 */
#ifndef SUPPORT_JOURNAL_H
#define SUPPORT_JOURNAL_H

/*
 * journal_at_stderr():
 * Lead stderr to a stream socket, and say so in JOURNAL_STREAM. Returns its end to read from.
 *
 * Thread: the test's
 * Owns:   the caller closes the end
 * Errors: none (the test fails)
 */
int journal_at_stderr(void);

#endif
