/*
 * admin/admin_dispatch: checks a request and calls its handler, for admin/admin_http.
 *
 *   READING --head: checks--> READING --body--> HANDLING --admin_answer_*()--> ANSWERED
 *                  \--refused--> ANSWERED, and the body is dropped
 */
#ifndef ADMIN_ADMIN_DISPATCH_H
#define ADMIN_ADMIN_DISPATCH_H

#include "admin/admin_http.h"

extern const struct admin_http_ops admin_dispatch_ops;

#endif
