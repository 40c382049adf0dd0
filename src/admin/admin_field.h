/*
 * admin/admin_field: reads the fields of a request, from its query or body.
 *
 * A field that is absent leaves ${out} as it is. For a wrong value a function answers ${rq} with
 * 400 and returns false: then the handler must return.
 */
#ifndef ADMIN_ADMIN_FIELD_H
#define ADMIN_ADMIN_FIELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct admin_request;

/* admin_field_has(rq, name): is the field ${name} present? Thread: admin loop */
bool admin_field_has(const struct admin_request *rq, const char *name);

/*
 * admin_field_text(rq, name, out):
 * Read a string that is not empty.
 *
 * Thread: admin loop
 * Owns:   ${out} is valid until the answer
 */
bool admin_field_text(struct admin_request *rq, const char *name, const char **out) NODISCARD;

/*
 * admin_field_number(rq, name, min, max, out):
 * Read an integer from ${min} to ${max}.
 *
 * Thread: admin loop
 */
bool admin_field_number(struct admin_request *rq, const char *name, uint64_t min, uint64_t max,
                        uint64_t *out) NODISCARD;

/*
 * admin_field_duration(rq, name, min_ns, max_ns, out_ns):
 * Read a duration as in the configuration: "10s".
 *
 * Thread: admin loop
 */
bool admin_field_duration(struct admin_request *rq, const char *name, int64_t min_ns,
                          int64_t max_ns, int64_t *out_ns) NODISCARD;

/*
 * admin_field_flag(rq, name, out):
 * Read true or false; from a string also yes, no and the like.
 *
 * Thread: admin loop
 */
bool admin_field_flag(struct admin_request *rq, const char *name, bool *out) NODISCARD;

#endif
