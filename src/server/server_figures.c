#include "server/server_figures.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "listen/listener_generation.h"
#include "listen/listeners.h"
#include "server/certificates.h"
#include "server/server_internal.h"
#include "server/upstreams.h"
#include "sessions/overload.h"
#include "sessions/rebalance.h"
#include "sessions/session_spread.h"
#include "stats/executor_figures.h"
#include "stats/figure.h"
#include "stats/figure_log.h"
#include "stats/loop_figures.h"
#include "tls/tls_handshakes.h"
#include "tls/tls_memory.h"
#include "upstream/upstream.h"
#include "upstream/upstream_figures.h"

/* Show at most so many certificates: those that expire first. */
#define SERVER_FIGURES_CERTIFICATES 32

struct server_figures {
    struct server *server;
    struct server_figures_conf conf;
    bool has_shown_process, has_shown_common;
    struct loop **loops;
    unsigned n_loops, next_loop;
    struct listener_generation **listeners; /* with references from `next_listener` on */
    unsigned n_listeners, next_listener;
    struct upstream **upstreams; /* with references from `next_upstream` on */
    unsigned n_upstreams, next_upstream;
    struct server_set *set; /* servers of the upstream before `next_upstream`; NULL: all shown */
    unsigned next_server;
    unsigned n_servers; /* shown so far */
    uint64_t servers_left_out;
    struct certificates_row certificates[SERVER_FIGURES_CERTIFICATES];
};

struct server_figures_view {
    const char *version;
    int64_t start_ns, cpu_ns;
    unsigned max_descriptors;
    uint64_t resident;
    int64_t tls_memory;
    struct session_spread_figures spread;
};

static const struct figure server_figures_rows[] = {
    FIGURE_OF(struct server_figures_view, STATE, NUMBER, version, "Version of reactord."),
    FIGURE_ROW(struct server_figures_view, start_ns, "start_time_ms", FIGURE_GAUGE, FIGURE_NS, 0,
               "Start of the process, in Unix time."),
    FIGURE_LIVE(struct server, GAUGE, NUMBER, draining, "draining", "1 while the process drains."),
    FIGURE_LIVE(struct server, GAUGE, NUMBER, sessions, "sessions", "Sessions open now."),
    FIGURE_LIVE(struct server, GAUGE, NUMBER, connection_limit.quota.max_connections,
                "max_connections", "Connections that are allowed to the process; 0: no limit."),
    FIGURE_LIVE(struct server, GAUGE, NUMBER, descriptors.used, "descriptors",
                "Descriptors that connections use or have reserved."),
    FIGURE_OF(struct server_figures_view, GAUGE, NUMBER, max_descriptors,
              "Descriptors that connections may use."),
    FIGURE_MS_OF(struct server_figures_view, COUNTER, cpu, 0, "Processor time of the process."),
    FIGURE_OF(struct server_figures_view, GAUGE, BYTES, resident, "Resident memory."),
    FIGURE_OF(struct server_figures_view, GAUGE, BYTES, tls_memory, "Memory of the TLS library."),
    FIGURE_ROW(struct server_figures_view, spread.workers, "workers", FIGURE_GAUGE, FIGURE_NUMBER,
               0, "Worker loops in use."),
    FIGURE_LIVE(struct server, GAUGE, NUMBER, admin_threads, "workers_set",
                "Worker loops that an administrator has set; 0: as configured."),
    FIGURE_LIVE(struct server, COUNTER, NUMBER, n_scaled_up, "scaled_up",
                "Changes to more worker loops, by the load (threads = auto)."),
    FIGURE_LIVE(struct server, COUNTER, NUMBER, n_scaled_down, "scaled_down",
                "Changes to fewer worker loops, by the load."),
    FIGURE_ROW(struct server_figures_view, spread.sessions_moved, "sessions_moved", FIGURE_COUNTER,
               FIGURE_NUMBER, 0, "Sessions moved because the number of workers has changed."),
    FIGURE_ROW(struct server_figures_view, spread.staying[SESSION_OBSTACLE_PREFACE],
               "staying_preface", FIGURE_GAUGE, FIGURE_NUMBER, 0,
               "On workers out of use: first bytes not complete."),
    FIGURE_ROW(struct server_figures_view, spread.staying[SESSION_OBSTACLE_CONNECTING],
               "staying_connecting", FIGURE_GAUGE, FIGURE_NUMBER, 0,
               "On workers out of use: no server yet."),
    FIGURE_ROW(struct server_figures_view, spread.staying[SESSION_OBSTACLE_BUSY], "staying_busy",
               FIGURE_GAUGE, FIGURE_NUMBER, 0,
               "On workers out of use: another thread works for it."),
    FIGURE_ROW(struct server_figures_view, spread.staying[SESSION_OBSTACLE_CLOSING],
               "staying_closing", FIGURE_GAUGE, FIGURE_NUMBER, 0,
               "On workers out of use: about to end."),
    FIGURE_ROW(struct server_figures_view, spread.staying[SESSION_OBSTACLE_NONE], "staying_failed",
               FIGURE_GAUGE, FIGURE_NUMBER, 0, "On workers out of use: a move failed."),
};

static const struct figure_table server_figures_table = {
    .is_not_logged = true,
    FIGURE_LIVE_TABLE(sizeof(struct server_figures_view), server_figures_rows)};

struct server_figures_certificate {
    int64_t expires_in_ns;
};

static const struct figure server_figures_certificate_rows[] = {
    FIGURE_MS_OF(struct server_figures_certificate, GAUGE, expires_in, 0,
                 "Time until a certificate expires, of the 32 that do so first."),
};

static const struct figure_table server_figures_certificate_table = {
    FIGURE_TABLE(struct server_figures_certificate, server_figures_certificate_rows)};

struct server_figures_left_out {
    uint64_t servers_left_out;
};

static const struct figure server_figures_left_out_rows[] = {
    FIGURE_OF(struct server_figures_left_out, GAUGE, NUMBER, servers_left_out,
              "Servers without metrics, beyond metrics_servers."),
};

static const struct figure_table server_figures_left_out_table = {
    .is_not_logged = true,
    FIGURE_TABLE(struct server_figures_left_out, server_figures_left_out_rows)};

static const struct figure_object server_figures_process = {.subject = FIGURE_PROCESS};

static int64_t server_figures_time_ns(const struct timeval *tv)
{
    return tv->tv_sec * NS_PER_S + tv->tv_usec * NS_PER_US;
}

static int64_t server_figures_cpu_ns(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return 0;
    return server_figures_time_ns(&usage.ru_utime) + server_figures_time_ns(&usage.ru_stime);
}

/* Resident memory; 0: unknown, as in a chroot without /proc. */
static uint64_t server_figures_resident(void)
{
    unsigned long long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (!f)
        return 0;
    if (fscanf(f, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void server_figures_show_process(struct server *sv, struct figure_visitor *v)
{
    const struct server_figures_view view = {.version = REACTORD_VERSION,
                                             .start_ns = sv->started_at_s * NS_PER_S,
                                             .max_descriptors = sv->descriptors.max,
                                             .cpu_ns = server_figures_cpu_ns(),
                                             .resident = server_figures_resident(),
                                             .tls_memory = tls_memory_bytes(),
                                             .spread = session_spread_figures(sv->spread)};

    figure_show_live(v, &server_figures_table, &server_figures_process, &view, sv);
}

int server_figures_begin(struct server_figures **out, struct server *sv,
                         const struct server_figures_conf *conf)
{
    struct server_figures *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->server = sv;
    w->conf = *conf;
    w->has_shown_process = w->has_shown_common = conf->sampled;
    w->loops = threads_loops(&sv->threads, &w->n_loops);
    w->listeners = listeners_hold_all(sv->listeners, &w->n_listeners);
    w->upstreams = upstreams_hold_all(sv->upstreams, conf->removed, &w->n_upstreams);
    if (!w->loops || !w->listeners || !w->upstreams) {
        server_figures_end(w);
        return -ENOMEM;
    }
    *out = w;
    return 0;
}

/* A certificate may be valid for millennia, an int64_t has space for 292 years. */
static int64_t server_figures_left_ns(int64_t left_s)
{
    int64_t ns;

    if (__builtin_mul_overflow(left_s, NS_PER_S, &ns))
        return left_s > 0 ? INT64_MAX : INT64_MIN;
    return ns;
}

static void server_figures_show_certificates(struct server_figures *w, struct figure_visitor *v)
{
    unsigned n =
        certificates_soonest(w->server->certificates, w->certificates, SERVER_FIGURES_CERTIFICATES);
    time_t now = time(NULL);

    for (unsigned i = 0; i < n; i++) {
        const struct certificates_row *row = &w->certificates[i];
        const struct figure_object object = {
            .subject = FIGURE_CERTIFICATE, .name = row->path, .owner = row->section};
        const struct server_figures_certificate view = {
            server_figures_left_ns(row->expires_at - now)};

        figure_show(v, &server_figures_certificate_table, &object, &view);
    }
}

static void server_figures_show_common(struct server_figures *w, struct figure_visitor *v)
{
    executor_figures(w->server->threads.executor, FIGURE_EXECUTOR, v);
    executor_figures(w->server->threads.lookups, FIGURE_LOOKUPS, v);
    tls_handshakes_figures(w->server->threads.handshakes, v);
    server_figures_show_certificates(w, v);
    if (w->conf.heap)
        overload_heap_figures(v);
    overload_figures(w->server->overload, v);
    rebalance_figures(w->server->rebalance, v);
}

static void server_figures_show_listener(struct server_figures *w, struct figure_visitor *v)
{
    struct listener_generation *gen = w->listeners[w->next_listener++];

    listener_generation_figures(gen, v);
    listener_generation_release(gen);
}

static void server_figures_leave_set(struct server_figures *w)
{
    if (!w->set)
        return;
    membership_release_set(w->set);
    w->set = NULL;
    upstream_release(w->upstreams[w->next_upstream - 1]);
}

static void server_figures_show_upstream(struct server_figures *w, struct figure_visitor *v)
{
    struct upstream *up = w->upstreams[w->next_upstream++];

    w->set = membership_hold_set(&up->membership);
    w->next_server = 0;
    upstream_figures(up, w->set, v);
}

static void server_figures_show_server(struct server_figures *w, struct figure_visitor *v)
{
    const struct server_set *set = w->set;

    if (w->next_server == set->n) {
        server_figures_leave_set(w);
    } else if (w->n_servers == w->conf.max_servers) {
        w->servers_left_out += set->n - w->next_server;
        server_figures_leave_set(w);
    } else {
        const struct upstream *up = w->upstreams[w->next_upstream - 1];
        struct upstream_server *server = set->servers[w->next_server++];

        if (w->conf.sampled)
            upstream_figures_connects(up, server, v);
        else
            upstream_figures_server(up, server, v);
        w->n_servers++;
    }
}

bool server_figures_step(struct server_figures *w, struct figure_visitor *v)
{
    struct server_figures_left_out left_out;

    if (!w->has_shown_process) {
        w->has_shown_process = true;
        server_figures_show_process(w->server, v);
    } else if (w->next_loop < w->n_loops) {
        loop_figures(w->loops[w->next_loop++], v);
    } else if (!w->has_shown_common) {
        w->has_shown_common = true;
        server_figures_show_common(w, v);
    } else if (w->next_listener < w->n_listeners) {
        server_figures_show_listener(w, v);
    } else if (w->set) {
        server_figures_show_server(w, v);
    } else if (w->next_upstream < w->n_upstreams) {
        server_figures_show_upstream(w, v);
    } else {
        left_out.servers_left_out = w->servers_left_out;
        figure_show(v, &server_figures_left_out_table, &server_figures_process, &left_out);
        return false;
    }
    return true;
}

void server_figures_end(struct server_figures *w)
{
    if (!w)
        return;
    server_figures_leave_set(w);
    while (w->next_listener < w->n_listeners)
        listener_generation_release(w->listeners[w->next_listener++]);
    while (w->next_upstream < w->n_upstreams)
        upstream_release(w->upstreams[w->next_upstream++]);
    free(w->loops);
    free(w->listeners);
    free(w->upstreams);
    free(w);
}

void server_figures_log(struct server *sv)
{
    const struct server_figures_conf conf = {
        .max_servers = UINT_MAX, .removed = true, .heap = true};
    struct server_figures *w;

    if (server_figures_begin(&w, sv, &conf) < 0) {
        log_error("statistics: out of memory");
        return;
    }
    while (server_figures_step(w, figure_log()))
        continue;
    server_figures_end(w);
}
