/*
 * config/option_cpus: the kind of value that says which processors the threads of a group run on.
 *
 * Whether a processor that is named exists, and may be used, shows when the server is created: a
 * file can be checked on another machine. See option.h for the contract of option_kind.set.
 */
#ifndef CONFIG_OPTION_CPUS_H
#define CONFIG_OPTION_CPUS_H

#include "config/option.h"

/* The highest processor number, as of a cpu_set_t (CPU_SET(3)). */
#define OPTION_CPUS_MAX 1023

/*
 * struct server_cpus: one of option.words, or numbers and ranges with commas between, none of them
 * twice
 */
extern const struct option_kind option_cpus_affinity;

#endif
