/*
 * support/phase_table: the table of DESIGN.md that says what each event does in each phase of a
 * session.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_PHASE_TABLE_H
#define SUPPORT_PHASE_TABLE_H

#include "service/session_internal.h"

#define PHASES (SESSION_PHASE_ENDING + 1)

/* What an event does: the next phase, or one of these. */
enum { YES = PHASES, NO, NEVER };

/* Read it; returns the number of its events. */
int phase_table_read(void);

/* The word of event ${text} in ${phase}; the test fails if there is no such event. */
const char *phase_table_cell(const char *text, int phase);

/* What this word means: a phase, YES, NO or NEVER. */
int phase_table_expected(const char *text, int phase);

#endif
