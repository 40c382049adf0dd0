/*
 * server/descriptors: splits the process's descriptors between clients and other uses.
 *
 * note: descriptors. A client is accepted only if descriptors for its session are left: at the
 * limit clients wait in the kernel's queue. The descriptors open at start are set aside, and some
 * for a log file, lookups, checks, and a pipe per worker. Further pipes and spare connections use
 * lent descriptors (note: lent in net/descriptor_budget.h).
 */
#ifndef SERVER_DESCRIPTORS_H
#define SERVER_DESCRIPTORS_H

#include "base/must.h"

struct descriptor_budget;

/* Uses of descriptors besides clients: the number of each at a time. */
struct descriptors_aside {
    unsigned lookups;
    unsigned checks;
    unsigned workers;
    unsigned others; /* descriptors for the layers above */
};

/* descriptors_checks_max(): maximum of health checks at a time. */
unsigned descriptors_checks_max(void);

/*
 * descriptors_set_limit(d, aside, each):
 * Limit ${d} to what the process may still open, less ${aside}. ${d} counts ${aside}
 * (descriptors_prepare()), and the listen sockets, which are open already. ${each}: what one client
 * needs.
 *
 * Thread: main, before start
 * Errors: 0; -EMFILE (not enough for one client, as logged)
 */
int descriptors_set_limit(struct descriptor_budget *d, const struct descriptors_aside *aside,
                          unsigned each) NODISCARD;

/*
 * descriptors_prepare(d, from, to) / descriptors_commit(d, from, to) /
 * descriptors_cancel(d, from, to):
 * Set aside what ${to} needs beyond ${from} / return what ${from} needed beyond ${to} / undo the
 * prepare.
 *
 * Thread: control loop
 * Errors: 0; -EMFILE
 */
int descriptors_prepare(struct descriptor_budget *d, const struct descriptors_aside *from,
                        const struct descriptors_aside *to) NODISCARD;
void descriptors_commit(struct descriptor_budget *d, const struct descriptors_aside *from,
                        const struct descriptors_aside *to);
void descriptors_cancel(struct descriptor_budget *d, const struct descriptors_aside *from,
                        const struct descriptors_aside *to);

#endif
