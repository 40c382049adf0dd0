#include "listen/listener_generation.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "handlers/pipeline_template.h"
#include "limits/admission.h"
#include "listen/listener_internal.h"
#include "listen/listeners.h"
#include "service/echo.h"
#include "service/proxy.h"
#include "service/session.h"
#include "stats/access_log.h"
#include "stats/counters_set.h"
#include "stats/figure.h"
#include "upstream/upstream.h"

static struct listener_generation *listener_generation_current(const struct listener *ls)
{
    return atomic_load(&ls->current); /* see note: current */
}

static int listener_generation_create_admission(struct listener_generation *gen,
                                                const struct listener_generation *before,
                                                const struct admission_share *share)
{
    struct admission_conf conf = {.listener = gen->listener->name,
                                  .access = &gen->conf.access,
                                  .on_deny = gen->conf.on_deny,
                                  .clients = gen->conf.clients,
                                  .ban = gen->conf.ban,
                                  .exempt = &gen->conf.ban_exempt,
                                  .over =
                                      share->name ? gen->conf.over_shared : gen->conf.over_limit,
                                  .share = *share,
                                  .before = before ? before->admission : NULL};

    if (gen->conf.accept_proxy.mode != PROXY_PROTOCOL_OFF)
        conf.proxies = &gen->conf.accept_proxy.trusted;
    return admission_create(&gen->admission, &conf);
}

/* Keep the previous generation's mirror counters, even without a mirror now. */
static int listener_generation_create_mirror(struct listener_generation *gen,
                                             const struct listener_generation *before)
{
    if (before && before->mirror.counters) {
        gen->mirror.counters = mirror_counters_hold(before->mirror.counters);
        return 0;
    }
    return gen->mirror.upstream ? mirror_counters_create(&gen->mirror.counters) : 0;
}

static int listener_generation_create_plan(struct listener_generation *gen,
                                           const struct listener_generation *before,
                                           struct executor *executor)
{
    const struct listener_conf *conf = &gen->conf;
    int rc;

    if (!pipeline_template_wanted(&conf->pipeline))
        return 0;
    rc = pipeline_template_create(&gen->plan, &conf->pipeline, conf->memory, executor);
    if (rc == 0)
        pipeline_template_inherit(gen->plan, before ? before->plan : NULL);
    return rc;
}

static int listener_generation_create_routes(struct listener_generation *gen,
                                             const struct listeners_sources *src)
{
    const struct listener_conf *conf = &gen->conf;
    struct upstream **upstreams;
    unsigned n;
    int rc;

    if (conf->n_routes == 0)
        return 0;
    n = listener_conf_targets(conf) - 1;
    upstreams = calloc(n, sizeof(upstreams[0]));
    if (!upstreams)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        const char *name = listener_conf_target(conf, i + 1);

        if (name) /* else refuses the client */
            upstreams[i] = src->upstream(src->cookie, name);
    }
    gen->routes.timeout_ns = conf->client_hello_timeout_ns;
    rc = route_table_create(&gen->routes.table, conf->routes, conf->n_routes, upstreams);
    free(upstreams);
    return rc;
}

static void listener_generation_init_tls(struct listener_generation *gen,
                                         const struct listener_generation_from *from)
{
    const struct listener_tls_conf *conf = &gen->conf.tls;

    gen->tls = (struct session_tls_conf){
        .sections = conf->sections,
        .handler = {.handshakes = from->handshakes, .counters = &gen->listener->tls},
        .over_limit = gen->conf.over_limit,
        .timeout_ns = conf->handshake_timeout_ns,
        .postgres = conf->start == LISTENER_TLS_POSTGRES};
}

static void listener_generation_hold_logs(struct listener_generation *gen,
                                          const struct listeners_sources *src)
{
    const struct listener_log_conf *conf;
    unsigned n = 0;

    for (unsigned i = 0; src->access_log && (conf = listener_conf_log(&gen->conf, i)); i++) {
        struct access_log *log = access_log_hold(src->access_log(src->cookie, conf->where));

        MUST(n < SERVICE_ACCESS_LOGS);
        if (log)
            gen->access_logs[n++] = (struct service_access_log){.log = log,
                                                                .format = conf->format,
                                                                .filter = conf->filter,
                                                                .at_connect = conf->at_connect};
    }
    gen->service.access_logs = gen->access_logs;
    gen->service.n_access_logs = n;
}

static void listener_generation_init_service(struct listener_generation *gen,
                                             const struct listener_generation_from *from)
{
    const struct listeners_sources *src = from->sources;
    const struct listener_conf *conf = &gen->conf;
    struct service *service = &gen->service;

    *service = (struct service){.ops = conf->service == LISTENER_ECHO ? &echo_ops : &proxy_ops,
                                .listener = gen->listener->name,
                                .counters = &gen->listener->counters,
                                .rounds = &gen->listener->rounds,
                                .admission = gen->admission,
                                .pipeline = gen->plan,
                                .access_log_interval_ns = conf->access_log.interval_ns,
                                .conf = &conf->session};
    MUST(conf->service == LISTENER_ECHO || conf->upstream || gen->routes.table);
    if (conf->upstream)
        service->upstream = upstream_hold(src->upstream(src->cookie, conf->upstream));
    if (gen->routes.table)
        service->routes = &gen->routes;
    listener_generation_hold_logs(gen, src);
    service->proxies = &gen->proxies;
    if (throttle_plan_init(&gen->throttle, &conf->bandwidth, &gen->listener->bandwidth))
        service->throttle = &gen->throttle;
    if (gen->mirror.upstream)
        service->mirror = &gen->mirror;
    listener_generation_init_tls(gen, from);
    if (gen->tls.sections)
        service->tls = &gen->tls;
}

int listener_generation_create(struct listener_generation **out, struct listener *ls,
                               const struct listener_conf *conf,
                               const struct admission_share *share,
                               const struct listener_generation_from *from)
{
    const struct listeners_sources *src = from->sources;
    const struct listener_generation *before = listener_generation_current(ls);
    struct listener_generation *gen = calloc(1, sizeof(*gen));
    int rc;

    if (!gen)
        return -ENOMEM;
    gen->listener = listener_hold(ls);
    gen->conf = *conf;
    gen->sockets = conf->reuseport > src->acceptors ? conf->reuseport : src->acceptors;
    (void)arena_hold(conf->memory);
    list_init(&gen->link);
    ref_init(&gen->references);
    gen->proxies =
        (struct proxy_protocol_gate){.conf = &gen->conf.accept_proxy, .listener = ls->name};
    gen->mirror.buffer_bytes = conf->mirror_buffer_bytes;
    if (conf->mirror)
        gen->mirror.upstream = upstream_hold(src->upstream(src->cookie, conf->mirror));
    rc = listener_generation_create_admission(gen, before, share);
    if (rc == 0)
        rc = listener_generation_create_mirror(gen, before);
    if (rc == 0)
        rc = listener_generation_create_plan(gen, before, from->executor);
    if (rc == 0)
        rc = listener_generation_create_routes(gen, src);
    if (rc < 0) {
        listener_generation_release(gen);
        return rc;
    }
    listener_generation_init_service(gen, from);
    *out = gen;
    return 0;
}

struct listener_generation *listener_generation_begin(struct listener_generation *gen)
{
    struct listener *ls = gen->listener;
    struct listener_generation *before = listener_generation_current(ls);
    int64_t now_ns = clock_now_ns();

    admission_begin(gen->admission, now_ns);
    if (before)
        throttle_plan_begin(&gen->throttle, &before->throttle, now_ns);
    atomic_store(&ls->current, gen); /* see note: current */
    return before;
}

struct listener_generation *listener_generation_end(struct listener *ls, int64_t leave_by_ns)
{
    atomic_store_explicit(&ls->leave_by_ns, leave_by_ns, memory_order_relaxed);
    return atomic_exchange(&ls->current, NULL); /* see note: current */
}

int64_t listener_generation_leave_by_ns(const struct session *s)
{
    const struct listener *ls = listener_generation_of(s->service)->listener;

    return atomic_load_explicit(&ls->leave_by_ns, memory_order_relaxed);
}

void listener_generation_carry_over(struct session *s)
{
    struct listener_generation *from = listener_generation_of(s->service);
    struct listener_generation *to = listener_generation_current(from->listener);

    if (!to || to == from || to->service.ops != from->service.ops)
        return;
    session_carry_over(s, &listener_generation_hold(to)->service);
    listener_generation_release(from);
}

static const struct figure listener_generation_waits_rows[] = {
    FIGURE_LIVE(struct listener, COUNTER, NUMBER, waits, "limit_waits",
                "Times that new clients had to wait for a limit."),
    FIGURE_LIVE(struct listener, COUNTER, NUMBER, served_over, "served_over_limit",
                "Clients above a limit of the listener that over_limit = log served."),
};

static const struct figure_table listener_generation_waits_table = {
    .is_not_logged_at_zero = true, FIGURE_LIVE_TABLE(0, listener_generation_waits_rows)};

void listener_generation_counters(const struct listener_generation *gen, struct counters_set *set)
{
    struct listener *ls = gen->listener;

    set->n = 0;
    counters_set_add_sessions(set, &ls->counters);
    counters_set_add_table(set, &listener_generation_waits_table, ls);
    counters_set_add_table(set, &tls_counters_figures, &ls->tls);
    admission_add_counters(gen->admission, set);
    if (gen->mirror.counters)
        counters_set_add_table(set, &mirror_figures, gen->mirror.counters);
    if (gen->plan)
        pipeline_template_add_counters(gen->plan, set);
}

struct listener_generation_view {
    const char *service, *upstream, *limits, *state;
    struct figure_addresses addresses;
};

static const struct figure listener_generation_rows[] = {
    FIGURE_OF(struct listener_generation_view, TEXT, NUMBER, service, "Service: echo or proxy."),
    FIGURE_OF(struct listener_generation_view, TEXT, NUMBER, upstream, "Upstream of a proxy."),
    FIGURE_OF(struct listener_generation_view, TEXT, NUMBER, limits, "Limits that it shares."),
    FIGURE_OF(struct listener_generation_view, TEXT, NUMBER, addresses, "Addresses."),
    FIGURE_OF(struct listener_generation_view, STATE, NUMBER, state, "State of the listener."),
    FIGURE_LIVE(struct listener, GAUGE, NUMBER, quota.max_connections, "max_connections",
                "Connections that are allowed; 0: no limit."),
};

static const struct figure_table listener_generation_table = {
    .is_not_logged = true,
    FIGURE_LIVE_TABLE(sizeof(struct listener_generation_view), listener_generation_rows)};

void listener_generation_figures(const struct listener_generation *gen, struct figure_visitor *v)
{
    struct listener *ls = gen->listener;
    const struct figure_object object = {.subject = FIGURE_LISTENER, .name = ls->name};
    const struct listener_generation_view view = {
        .service = gen->conf.service == LISTENER_ECHO ? "echo" : "proxy",
        .upstream = gen->conf.upstream,
        .limits = gen->conf.limits,
        .addresses = {.list = gen->conf.addresses, .n = gen->conf.n_addresses},
        .state = hold_is_closed(&ls->hold) ? "paused" : "accepting"};

    figure_show_live(v, &listener_generation_table, &object, &view, ls);
    counters_figures(&ls->counters, &object, v);
    if (gen->service.tls)
        figure_show_live(v, &tls_counters_figures, &object, NULL, &ls->tls);
    admission_figures(gen->admission, &object, v);
    if (gen->mirror.counters)
        figure_show_live(v, &mirror_figures, &object, NULL, gen->mirror.counters);
    if (gen->plan)
        pipeline_template_figures(gen->plan, &object, v);
    figure_show_live(v, &listener_generation_waits_table, &object, NULL, ls);
    admission_figures_shared(gen->admission, v);
}

struct listener_generation *listener_generation_hold(struct listener_generation *gen)
{
    if (gen)
        ref_hold(&gen->references);
    return gen;
}

void listener_generation_release(struct listener_generation *gen)
{
    if (!gen || !ref_release(&gen->references))
        return;
    admission_destroy(gen->admission);
    if (gen->mirror.counters)
        mirror_counters_release(gen->mirror.counters);
    pipeline_template_release(gen->plan);
    for (unsigned i = 0; i < gen->service.n_access_logs; i++)
        access_log_release(gen->access_logs[i].log);
    if (gen->service.upstream)
        upstream_release(gen->service.upstream);
    if (gen->mirror.upstream)
        upstream_release(gen->mirror.upstream);
    route_table_destroy(gen->routes.table);
    arena_release(gen->conf.memory);
    listener_release(gen->listener);
    free(gen);
}
