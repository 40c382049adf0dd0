#include "load/load.h"

#include "common/die.h"
#include "common/net.h"
#include "load/procstat.h"
#include "load/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS_PER_TURN = 512,
    OPENING_AT_ONCE = 128, /* well under any server's backlog: a full one costs seconds */
    OPENING_LIMIT_S = 30,
    FINISH_LIMIT_S = 30,
};

static const uint64_t ns_per_s = 1000000000;

uint64_t load_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * ns_per_s + (uint64_t)now.tv_nsec;
}

void load_lost(const struct conn *conn, const char *what)
{
    die("connection %u: %s after %llu bytes sent, %llu received: %s", conn->seed, what,
        (unsigned long long)conn->sent, (unsigned long long)conn->received,
        errno ? strerror(errno) : "closed by the server");
}

void load_want(struct load *load, struct conn *conn, uint32_t interest)
{
    struct epoll_event event = {.events = interest, .data.ptr = conn};

    if (conn->interest == interest)
        return;
    conn->interest = interest;
    if (epoll_ctl(load->epfd, EPOLL_CTL_MOD, conn->fd, &event) < 0)
        die_errno("epoll_ctl");
}

void load_open(struct load *load, struct conn *conn)
{
    struct epoll_event event = {.events = load->mode->interest, .data.ptr = conn};

    conn->fd = net_connect(&load->opts.target);
    conn->interest = event.events;
    conn->end = conn->sent = conn->received = 0;
    wire_open(conn);
    if (epoll_ctl(load->epfd, EPOLL_CTL_ADD, conn->fd, &event) < 0)
        die_errno("epoll_ctl");
    load->mode->start(load, conn);
}

static void load_open_more(struct load *load)
{
    unsigned limit = load->phase == LOAD_FIRST ? 1 : load->opts.connections;

    while (load->opened < limit && load->opened - load->settled < OPENING_AT_ONCE) {
        struct conn *conn = &load->conns[load->opened];

        conn->seed = load->opened++;
        load_open(load, conn);
    }
}

void load_settle(struct load *load, struct conn *conn)
{
    if (conn->is_settled)
        return;
    conn->is_settled = true;
    load->settled++;
}

static void measure_begin(struct load *load)
{
    load->ops = 0;
    load->bytes = 0;
    histogram_reset(&load->latency);
    if (load->opts.server_pid)
        load->server_cpu_ns = procstat_cpu_ns(load->opts.server_pid);
    load->measure_begin_ns = load_now_ns();
}

static void measure_end(struct load *load)
{
    load->measured_ns = load_now_ns() - load->measure_begin_ns;
    if (!load->opts.server_pid)
        return;
    load->server_cpu_ns = procstat_cpu_ns(load->opts.server_pid) - load->server_cpu_ns;
    load->last_pss_kb = procstat_pss_kb(load->opts.server_pid);
}

static void load_enter(struct load *load, enum load_phase phase, uint64_t now_ns)
{
    load->phase = phase;
    if (phase == LOAD_WARMUP)
        load->phase_end_ns = now_ns + load->opts.warmup_ns;
    if (phase == LOAD_MEASURED)
        load->phase_end_ns = now_ns + load->opts.measure_ns;
}

/* See the phases in load.h. */
static void load_advance(struct load *load, uint64_t now_ns)
{
    bool is_time_up = now_ns >= load->phase_end_ns;

    if (load->phase <= LOAD_OPENING && is_time_up)
        die("%u of %u connections settled in time", load->settled, load->opts.connections);
    if (load->phase == LOAD_FIRST && load->settled == 1) {
        if (load->opts.server_pid)
            load->first_pss_kb = procstat_pss_kb(load->opts.server_pid);
        load_enter(load, LOAD_OPENING, now_ns);
    }
    if (load->phase <= LOAD_OPENING)
        load_open_more(load);
    if (load->phase == LOAD_OPENING && load->settled == load->opts.connections) {
        load_enter(load, LOAD_WARMUP, now_ns);
    } else if (load->phase == LOAD_WARMUP && is_time_up) {
        load_enter(load, LOAD_MEASURED, now_ns);
        measure_begin(load);
    } else if (load->phase == LOAD_MEASURED && is_time_up) {
        measure_end(load);
        load_enter(load, LOAD_FINISHED, now_ns);
    }
}

static void load_turn(struct load *load)
{
    struct epoll_event events[EVENTS_PER_TURN];
    uint64_t now_ns = load_now_ns();
    uint64_t end_ns = load->phase_end_ns;
    struct timespec left = {0};
    int count;

    if (load->mode->tick) {
        uint64_t due_ns = load->mode->tick(load, now_ns);

        end_ns = due_ns < end_ns ? due_ns : end_ns;
    }
    if (end_ns > now_ns) {
        left.tv_sec = (time_t)((end_ns - now_ns) / ns_per_s);
        left.tv_nsec = (long)((end_ns - now_ns) % ns_per_s);
    }
    count = epoll_pwait2(load->epfd, events, EVENTS_PER_TURN, &left, NULL);
    for (int i = 0; i < count; i++)
        load->mode->event(load, events[i].data.ptr, events[i].events);
}

void load_run(struct load *load)
{
    const struct options *opts = &load->opts;

    /* The last resort, should this program itself hang: SIGALRM ends it. */
    alarm(OPENING_LIMIT_S + FINISH_LIMIT_S +
          (unsigned)((opts->warmup_ns + opts->measure_ns) / ns_per_s) + 1);
    wire_init(opts);
    load->conns = calloc(opts->connections, sizeof(*load->conns));
    load->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (!load->conns || load->epfd < 0)
        die_errno("load");
    load->phase_end_ns = load_now_ns() + OPENING_LIMIT_S * ns_per_s;
    load_advance(load, load_now_ns());
    while (load->phase != LOAD_FINISHED) {
        load_turn(load);
        load_advance(load, load_now_ns());
    }
    for (unsigned i = 0; i < opts->connections && load->mode->finish; i++)
        load->mode->finish(load, &load->conns[i]);
}
