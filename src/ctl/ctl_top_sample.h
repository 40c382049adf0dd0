/*
 * ctl/ctl_top_sample: the figures of one moment.
 */
#ifndef CTL_CTL_TOP_SAMPLE_H
#define CTL_CTL_TOP_SAMPLE_H

#include <jansson.h>
#include <stdint.h>

#include "ctl/ctl_context.h"

enum ctl_top_section {
    CTL_TOP_LOOPS,
    CTL_TOP_LISTENERS,
    CTL_TOP_UPSTREAMS,
    CTL_TOP_EVENTS,
    CTL_TOP_SESSIONS
};

#define CTL_TOP_SECTIONS 5

struct ctl_top_sample {
    int64_t at_ns;
    json_t *status;                 /* NULL: nothing was sampled yet */
    json_t *rows[CTL_TOP_SECTIONS]; /* servers follow their upstream; the last event first */
};

/*
 * ctl_top_sample_take(c, sort, n_sessions, out):
 * Ask for all figures, and for the first ${n_sessions} sessions by ${sort}; on failure c->problem
 * says why.
 *
 * Owns:   CTL_EXIT_OK: the caller passes ${out} to ctl_top_sample_drop()
 */
enum ctl_exit ctl_top_sample_take(struct ctl_context *c, const char *sort, unsigned n_sessions,
                                  struct ctl_top_sample *out);
void ctl_top_sample_drop(struct ctl_top_sample *sample);

#endif
