/*
 * ctl/ctl_problem: messages for failed requests, with advice.
 */
#ifndef CTL_CTL_PROBLEM_H
#define CTL_CTL_PROBLEM_H

#include "ctl/ctl_context.h"

/* ctl_problem_of_failure(c, failure): write to c->problem why there is no answer. */
void ctl_problem_of_failure(struct ctl_context *c, enum ctl_client_failure failure);

/*
 * ctl_problem_of_refusal(c, request, answer):
 * Write the daemon's reason to c->problem. CTL_EXIT_FAILED: the answer does not come from reactord.
 */
enum ctl_exit ctl_problem_of_refusal(struct ctl_context *c, const struct ctl_request *request,
                                     const struct ctl_answer *answer);

#endif
