/*
 * ctl/ctl_filter: filters of sessions: options of `sessions` and `kill`, written as a query or a
 * body.
 */
#ifndef CTL_CTL_FILTER_H
#define CTL_CTL_FILTER_H

#include <jansson.h>
#include <stdio.h>

#include "ctl/ctl_arguments.h"

extern const struct ctl_option ctl_filter_options[];

/* ctl_filter_is_given(a): is any filter given? */
bool ctl_filter_is_given(const struct ctl_arguments *a);

/*
 * ctl_filter_put_query(out, a) / ctl_filter_put_argument(out, key, value):
 * Append the filters / one argument to a query, each after "&".
 */
void ctl_filter_put_query(FILE *out, const struct ctl_arguments *a);
void ctl_filter_put_argument(FILE *out, const char *key, const char *value);

/*
 * ctl_filter_body(a):
 * Return the filters as the body of a request.
 *
 * Owns:   the caller decrements the reference
 */
json_t *ctl_filter_body(const struct ctl_arguments *a);

#endif
