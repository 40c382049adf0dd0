/*
 * daemon/option_pipeline: the kind of value that says which handlers a listener has. See option.h for the contract of
 * option_kind.set.
 */
#ifndef DAEMON_OPTION_PIPELINE_H
#define DAEMON_OPTION_PIPELINE_H

#include "daemon/option.h"

/* list and n of a struct pipeline_conf: the names of handlers, each at most once, with commas between */
extern const struct option_kind option_pipeline;

#endif
