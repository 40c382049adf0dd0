/*
 * listen/listener_generation: the settings that one configuration gives a listener, and what is
 * built from them.
 *
 * Immutable after listener_generation_begin(). Each session has a reference; the last release frees
 * the generation and its part of the configuration.
 *
 * note: current. Sockets and listeners point at the current generation. A boss or worker loads the
 * pointer and takes a reference within one task. So a replaced generation is released when every
 * loop has run another task (sessions/carry_over). The pointer is sequentially consistent, as
 * engine/grace requires.
 */
#ifndef LISTEN_LISTENER_GENERATION_H
#define LISTEN_LISTENER_GENERATION_H

#include <stdint.h>

#include "base/ref.h"
#include "base/cache_line.h"
#include "base/list.h"
#include "base/must.h"
#include "handlers/proxy_protocol.h"
#include "limits/throttle.h"
#include "listen/listener.h"
#include "service/mirror.h"
#include "service/service.h"
#include "service/session_hello.h"
#include "service/session_tls.h"

struct admission;
struct counters_set;
struct executor;
struct figure_visitor;
struct listeners_sources;
struct session;

struct listener_generation {
    struct listener *listener; /* a reference */
    struct listener_conf conf; /* a copy; conf.memory holds what it points at */
    unsigned sockets;          /* wanted for each TCP address */
    struct service service;
    struct service_access_log access_logs[SERVICE_ACCESS_LOGS];
    struct admission *admission;
    struct mirror_plan mirror;
    struct proxy_protocol_gate proxies;
    struct session_routes routes;
    struct session_tls_conf tls;
    struct throttle_plan throttle;
    struct pipeline_template *plan; /* NULL: no handlers */
    struct list link;               /* in a list of replaced generations */
    char apart[CACHE_LINE_BYTES];   /* separates `references` from the members that sessions read */
    struct ref references;
};

struct listener_generation_from {
    const struct listeners_sources *sources;
    struct executor *executor;
    struct tls_handshakes *handshakes;
};

/*
 * listener_generation_create(out, ls, conf, share, from):
 * Create the next generation of ${ls}. The name in ${share} is that of ${conf}.
 *
 * Thread: control loop, or main before start
 * Owns:   the caller has a reference to ${out}, which copies ${conf} and holds its memory; executor
 *         and handshakes of ${from} must outlive ${out}
 * Errors: 0; as admission_create() and pipeline_template_create()
 */
int listener_generation_create(struct listener_generation **out, struct listener *ls,
                               const struct listener_conf *conf,
                               const struct admission_share *share,
                               const struct listener_generation_from *from) NODISCARD;

/*
 * listener_generation_begin(gen):
 * Make ${gen} current. Returns the previous generation, with its reference, or NULL.
 *
 * Thread: control loop, or main before start
 * Owns:   takes the reference to ${gen}
 */
struct listener_generation *listener_generation_begin(struct listener_generation *gen);

/*
 * listener_generation_end(ls, leave_by_ns):
 * Take the current generation from the removed ${ls} and return it with its reference, or NULL.
 * Sessions must end by ${leave_by_ns}.
 *
 * Thread: control loop
 */
struct listener_generation *listener_generation_end(struct listener *ls, int64_t leave_by_ns);

/*
 * listener_generation_leave_by_ns(s):
 * Time by which ${s} must end because its listener was removed; CLOCK_NEVER: no such time.
 *
 * Thread: loop of ${s}
 */
int64_t listener_generation_leave_by_ns(const struct session *s);

/*
 * listener_generation_carry_over(s):
 * Move ${s} to the current generation of its listener, unless the listener was removed or has
 * another service now.
 *
 * Thread: loop of ${s}
 */
void listener_generation_carry_over(struct session *s);

/* listener_generation_of(service): return the generation that contains a session's ${service}. */
static inline struct listener_generation *listener_generation_of(const struct service *service)
{
    return CONTAINER_OF(service, struct listener_generation, service);
}

/*
 * listener_generation_counters(gen, set):
 * Fill ${set} with the listener's counters, so that another process can continue them.
 *
 * Thread: any; ${gen} must outlive ${set}
 */
void listener_generation_counters(const struct listener_generation *gen, struct counters_set *set);

/* listener_generation_figures(gen, v): visit the figures of the listener. */
void listener_generation_figures(const struct listener_generation *gen, struct figure_visitor *v);

/*
 * listener_generation_hold(gen) / listener_generation_release(gen):
 * Add a reference and return ${gen} / release one: the last frees ${gen}. NULL is allowed.
 */
struct listener_generation *listener_generation_hold(struct listener_generation *gen);
void listener_generation_release(struct listener_generation *gen);

#endif
