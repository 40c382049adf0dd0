/*
 * ctl/ctl_complete: completions of the word at the cursor, for shells.
 */
#ifndef CTL_CTL_COMPLETE_H
#define CTL_CTL_COMPLETE_H

#include "ctl/ctl_command.h"

/*
 * ctl_complete_words(n, words):
 * Write all candidates for the last of ${n} words, one a line; the shell filters the candidates.
 * Names come from the daemon, if it answers.
 */
void ctl_complete_words(int n, char **words);

#endif
