/*
 * server/autoscale: measures the load of the workers, for `threads = auto` of [worker].
 *
 * Main only. While it settles the main thread does not doze: without load the number of workers
 * goes down to its lower limit; then nothing wakes up.
 */
#ifndef SERVER_AUTOSCALE_H
#define SERVER_AUTOSCALE_H

#include "server/autoscale_plan.h"
#include "server/server_conf.h"

struct loop_group;

/* Zeroed: nothing is measured. */
struct autoscale {
    struct autoscale_plan plan;
    int64_t at_ns; /* last sample; 0: none */
    int64_t total_ns;
    int64_t busy_ns[SERVER_WORKERS_MAX]; /* by loop number, at the last sample */
};

/*
 * autoscale_look(a, workers, min, max):
 * Take a sample of ${workers}, of which ${min} to ${max} may be in use. A change of their number,
 * or of these limits, begins anew. ${max} 0: the number is fixed.
 *
 * Thread: main, at any interval
 */
void autoscale_look(struct autoscale *a, const struct loop_group *workers, unsigned min,
                    unsigned max);

/* autoscale_forget(a): begin anew, as after a change of the number of workers. Thread: main */
void autoscale_forget(struct autoscale *a);

/* autoscale_is_settling(a): may the number of workers go down without load? Thread: main */
bool autoscale_is_settling(const struct autoscale *a);

#endif
