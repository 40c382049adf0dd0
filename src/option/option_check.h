/*
 * option/option_check: option kinds: what health checks send and expect.
 */
#ifndef OPTION_OPTION_CHECK_H
#define OPTION_OPTION_CHECK_H

#include "option/option.h"

/* In a struct check_http_conf: request line; host; a header of a family; statuses. */
extern const struct option_kind option_check_request;
extern const struct option_kind option_check_host;
extern const struct option_kind option_check_header;
extern const struct option_kind option_check_status;

extern const struct option_kind option_check_step; /* of a family; in a struct check_conf */
extern const struct option_kind option_check_user; /* const char * */

#endif
