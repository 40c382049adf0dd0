/*
 * support/fault: system calls that fail when a test says so.
 *
 * Every test program is linked with functions of these names in front of the C library's; they pass the call on
 * unless a fault is planned.
 */
#ifndef SUPPORT_FAULT_H
#define SUPPORT_FAULT_H

enum fault_call { FAULT_PTHREAD_CREATE, FAULT_ACCEPT4, FAULT_SEND, FAULT_SPLICE };

/* As `times`: from now on always. */
#define FAULT_ALWAYS 0xffffffffu

/*
 * fault_plan(call, skip, times, error):
 * Let the next ${skip} calls pass and the ${times} after them fail with the errno ${error}. 0 times: none fail.
 *
 * Thread: any
 * Errors: none
 */
void fault_plan(enum fault_call call, unsigned skip, unsigned times, int error);

/*
 * fault_calls(call):
 * How often ${call} was made so far, failed or not.
 *
 * Thread: any
 * Errors: none
 */
unsigned fault_calls(enum fault_call call);

#endif
