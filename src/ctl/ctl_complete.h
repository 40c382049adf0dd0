/*
 * ctl/ctl_complete: candidates for the word at the cursor, for shells.
 */
#ifndef CTL_CTL_COMPLETE_H
#define CTL_CTL_COMPLETE_H

#include "ctl/ctl_command.h"

/*
 * ctl_complete_words(n, words):
 * Write what may be the last of ${n} words, a candidate a line, whether it begins like the word or
 * not. Names come from the daemon, if it answers.
 *
 * Thread: main
 */
void ctl_complete_words(int n, char **words);

#endif
