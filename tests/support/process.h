/*
 * support/process: what this process holds, as the kernel sees it.
 */
#ifndef SUPPORT_PROCESS_H
#define SUPPORT_PROCESS_H

#include <sys/resource.h>

/*
 * process_descriptors() / process_loops():
 * How many descriptors are open; how many threads carry a name of their own, as those of loops do.
 * (Sanitizers have threads, too. A thread is named a moment after it was started, and listed a
 * moment longer than it lives.)
 *
 * Thread: any
 * Errors: none (the test fails)
 */
unsigned process_descriptors(void);
unsigned process_loops(void);

/*
 * process_allow_descriptors(more):
 * Let ${more} further descriptors be opened and no more, until the test ends.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void process_allow_descriptors(unsigned more);

/*
 * process_allow_any_descriptors():
 * Take back process_allow_descriptors().
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void process_allow_any_descriptors(void);

#endif
