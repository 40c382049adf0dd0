/*
 * support/process: what this process holds, as the kernel sees it.
 */
#ifndef SUPPORT_PROCESS_H
#define SUPPORT_PROCESS_H

#include <sys/resource.h>

/*
 * process_descriptors() / process_threads():
 * How many descriptors are open; how many threads there are.
 *
 * Thread: any
 * Errors: none (the test fails)
 */
unsigned process_descriptors(void);
unsigned process_threads(void);

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
