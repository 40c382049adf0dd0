/* option/option_threads: option kind: number of worker threads, or limits of it. */
#ifndef OPTION_OPTION_THREADS_H
#define OPTION_OPTION_THREADS_H

#include "option/option.h"

/* struct server_workers_conf: a number from option.min to option.max, `auto`, or `auto N-M` */
extern const struct option_kind option_threads_workers;

#endif
