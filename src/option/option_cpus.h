/*
 * option/option_cpus: option kind: CPU affinity of a thread group.
 *
 * server_create() checks that the processors exist, so that a file can be tested on another host.
 */
#ifndef OPTION_OPTION_CPUS_H
#define OPTION_OPTION_CPUS_H

#include "option/option.h"

/* Limit of cpu_set_t, CPU_SET(3). */
#define OPTION_CPUS_MAX 1023

/* struct server_cpus: one of option.words, or comma-separated unique numbers and ranges */
extern const struct option_kind option_cpus_affinity;

#endif
