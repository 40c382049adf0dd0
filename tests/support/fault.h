/*
 * support/fault: system calls that fail when a test says so.
 *
 * Every test program is linked with functions of these names in front of the C library's, also for
 * the libraries it uses; they pass the call on unless a fault is planned.
 */
#ifndef SUPPORT_FAULT_H
#define SUPPORT_FAULT_H

enum fault_call {
    FAULT_PTHREAD_CREATE,
    FAULT_ACCEPT4,
    FAULT_RECV,
    FAULT_SEND,
    FAULT_SPLICE,
    FAULT_EPOLL_CREATE1,
    FAULT_EPOLL_CTL,
    FAULT_EPOLL_WAIT,
    FAULT_WRITE, /* write() of 8 bytes, as to an eventfd */
    FAULT_MEMORY /* malloc, calloc, realloc and aligned_alloc in this program's own code */
};

/* As `error`, of FAULT_EPOLL_WAIT: the call is made, FAULT_SLOW_MS later. */
#define FAULT_SLOW    (-1)
#define FAULT_SLOW_MS 250

/*
 * As `error`, of FAULT_SPLICE: the first of the calls moves a byte, those after it fail with EPIPE,
 * as if a reset had come during the first one.
 */
#define FAULT_RESET_MISSED (-2)

/* As `times`: from now on always. */
#define FAULT_ALWAYS 0xffffffffu

/*
 * fault_plan(call, skip, times, error):
 * Let the next ${skip} calls pass and the ${times} after them fail with the errno ${error}; with an
 * ${error} of 0 they do nothing and return 0 (no events, nothing sent). 0 times: none fail.
 *
 * Thread: any
 */
void fault_plan(enum fault_call call, unsigned skip, unsigned times, int error);

/*
 * fault_calls(call) / fault_struck(call):
 * How often ${call} was made so far, failed or not / was struck by a plan.
 *
 * Thread: any
 */
unsigned fault_calls(enum fault_call call);
unsigned fault_struck(enum fault_call call);

/*
 * fault_each_allocation(attempt, cookie):
 * Call ${attempt} with its first allocation failing, then its second, and so on, until none fails:
 * it must return -ENOMEM each time but the last, and then 0. Returns how many it makes.
 *
 * Thread: the test's, while no other allocates; ${attempt} calls nothing of check
 */
unsigned fault_each_allocation(int (*attempt)(void *cookie), void *cookie);

#endif
