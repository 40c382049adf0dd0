#include "upstream/upstream_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stats/counters_set.h"
#include "check/checker.h"
#include "upstream/upstream_internal.h"

#define UPSTREAM_STATE_TIMES " times="

/* Of a server, with failback = no. */
#define UPSTREAM_STATE_IN_USE " in_use=yes"

enum upstream_state_health {
    UPSTREAM_STATE_UNKNOWN,
    UPSTREAM_STATE_UP,         /* not checked yet, or not at all */
    UPSTREAM_STATE_CHECKED_UP, /* as a check has found */
    UPSTREAM_STATE_DOWN
};

/* Health of a server in another process. */
struct upstream_state_told {
    enum upstream_state_health health;
    struct ejection_past ejected; /* all 0: it was not ejected */
    int64_t changed_at_ns;        /* 0: not told */
    bool is_in_use;
    bool said_down; /* by its agent */
    struct upstream_state_times {
        uint64_t connect_ns, first_byte_ns;
        int64_t connect_at_ns, first_byte_at_ns; /* 0: not told */
    } times;
};

/* State of an unresolved server. */
struct upstream_state_server {
    struct list link;
    struct counters counters;
    struct counters_connects connects;
    struct tls_counters tls;
    _Atomic uint64_t downs;
    struct upstream_spare spare;
    struct upstream_state_told told;
    char name[];
};

static void upstream_state_server_set(struct counters_set *out, struct upstream_server *server)
{
    struct upstream_spare *spare = atomic_load(&server->spare);

    out->n = 0;
    counters_set_add_sessions(out, &server->counters);
    counters_set_add_connects(out, &server->connects);
    counters_set_add_table(out, &tls_counters_figures, &server->tls);
    counters_set_add(out, "downs", &server->endpoint.downs);
    if (spare)
        counters_set_add_table(out, spare->ops->table, spare);
}

static void upstream_state_expected_set(struct counters_set *out, struct upstream_state_server *s,
                                        const struct upstream_spares_ops *spares)
{
    out->n = 0;
    counters_set_add_sessions(out, &s->counters);
    counters_set_add_connects(out, &s->connects);
    counters_set_add_table(out, &tls_counters_figures, &s->tls);
    counters_set_add(out, "downs", &s->downs);
    if (spares)
        counters_set_add_table(out, spares->table, &s->spare);
}

static void upstream_state_set(struct counters_set *out, struct upstream *up)
{
    out->n = 0;
    counters_set_add_sessions(out, &up->counters);
    counters_set_add_table(out, &upstream_figures_table, up);
}

void upstream_state_init(struct upstream_state *st)
{
    list_init(&st->expected);
    st->last = &st->expected;
}

void upstream_state_close(struct upstream_state *st)
{
    list_for_each_safe (node, &st->expected)
        free(LIST_ENTRY(node, struct upstream_state_server, link));
    list_init(&st->expected);
}

static int64_t upstream_state_at_ns(const struct response_time_wait *w)
{
    return atomic_load_explicit(&w->measured_at_ns, memory_order_relaxed);
}

static void upstream_state_write_times(const struct response_time *t, FILE *f)
{
    if (!response_time_is_measured(&t->connect) && !response_time_is_measured(&t->first_byte))
        return;
    fprintf(f, UPSTREAM_STATE_TIMES "%" PRIu64 ",%" PRId64 ",%" PRIu64 ",%" PRId64,
            response_time_average_ns(&t->connect), upstream_state_at_ns(&t->connect),
            response_time_average_ns(&t->first_byte), upstream_state_at_ns(&t->first_byte));
}

static void upstream_state_write_server(struct upstream *up, struct upstream_server *server,
                                        bool stays, FILE *f)
{
    bool down = (endpoint_load(&server->endpoint) & ENDPOINT_DOWN) != 0;
    bool checked = atomic_load_explicit(&server->endpoint.is_checked, memory_order_relaxed);
    const char *up_text = checked ? "no,checked" : "no";
    bool said = (endpoint_load(&server->endpoint) & ENDPOINT_SAID_DOWN) != 0;
    struct ejection_past ejected;
    struct counters_set set;

    fprintf(f, "server %s/%s down=%s%s", up->name, server->name, down ? "yes" : up_text,
            said ? ",agent" : "");
    if (ejection_get(&up->ejection, &server->ejection, &ejected))
        fprintf(f, " ejected=%" PRId64 ",%u", ejected.returns_at_ns, ejected.times);
    fprintf(f, " since=%" PRId64,
            atomic_load_explicit(&server->endpoint.changed_at_ns, memory_order_relaxed));
    if (stays && upstream_in_use_is(server))
        fputs(UPSTREAM_STATE_IN_USE, f);
    upstream_state_write_times(&server->endpoint.times, f);
    upstream_state_server_set(&set, server);
    counters_set_write(&set, f);
    fputc('\n', f);
}

void upstream_state_write(struct upstream *up, FILE *f)
{
    struct server_set *servers = membership_hold_set(&up->membership);
    struct counters_set set;

    fprintf(f, "upstream %s", up->name);
    upstream_state_set(&set, up);
    counters_set_write(&set, f);
    fputc('\n', f);
    for (unsigned i = 0; i < servers->n; i++)
        upstream_state_write_server(up, servers->servers[i], balancer_stays(servers->balancer), f);
    membership_release_set(servers);
}

void upstream_state_continue(struct upstream *up, struct counters_report *report)
{
    struct counters_set set;

    upstream_state_set(&set, up);
    counters_set_report(&set, &up->counters, report);
}

static struct upstream_state_times upstream_state_times_of(const char *text)
{
    const char *at = strstr(text, UPSTREAM_STATE_TIMES);
    struct upstream_state_times t;

    if (!at || sscanf(at, UPSTREAM_STATE_TIMES "%" SCNu64 ",%" SCNd64 ",%" SCNu64 ",%" SCNd64,
                      &t.connect_ns, &t.connect_at_ns, &t.first_byte_ns, &t.first_byte_at_ns) != 4)
        return (struct upstream_state_times){.connect_at_ns = 0};
    return t;
}

static struct upstream_state_told upstream_state_told_of(const char *text)
{
    struct upstream_state_told told = {.health = UPSTREAM_STATE_UNKNOWN};
    struct ejection_past ejected;
    int64_t since;

    if (strncmp(text, "down=yes", strlen("down=yes")) == 0)
        told.health = UPSTREAM_STATE_DOWN;
    else if (strncmp(text, "down=no,checked", strlen("down=no,checked")) == 0)
        told.health = UPSTREAM_STATE_CHECKED_UP;
    else if (strncmp(text, "down=no", strlen("down=no")) == 0)
        told.health = UPSTREAM_STATE_UP;
    told.said_down = memmem(text, strcspn(text, " "), ",agent", strlen(",agent")) != NULL;
    if (sscanf(text, "down=%*s ejected=%" SCNd64 ",%u", &ejected.returns_at_ns, &ejected.times) ==
        2)
        told.ejected = ejected;
    if (sscanf(text, "down=%*s since=%" SCNd64, &since) == 1 ||
        sscanf(text, "down=%*s ejected=%*s since=%" SCNd64, &since) == 1)
        told.changed_at_ns = since;
    told.is_in_use = strstr(text, UPSTREAM_STATE_IN_USE) != NULL;
    told.times = upstream_state_times_of(text);
    return told;
}

static bool upstream_state_is_checked(const struct upstream *up,
                                      const struct upstream_server *server)
{
    return upstream_is_checked(atomic_load(&up->conf), atomic_load(&server->conf)) &&
           !atomic_load(&server->is_disabled);
}

static void upstream_state_use_flags(struct upstream *up, struct upstream_server *server,
                                     const struct upstream_state_told *told)
{
    if (!atomic_load(&server->conf)->never_ejected)
        ejection_restore(&up->ejection, &server->ejection, &server->endpoint, &told->ejected,
                         clock_now_ns());
    if (told->said_down && upstream_has_agent(atomic_load(&up->conf), atomic_load(&server->conf)) &&
        !checker_has(server->agent))
        (void)endpoint_set_flag(&server->endpoint, ENDPOINT_SAID_DOWN);
    if (told->health == UPSTREAM_STATE_UNKNOWN || !upstream_state_is_checked(up, server) ||
        checker_has(server->target)) /* it knows better */
        return;
    if (told->health == UPSTREAM_STATE_DOWN)
        (void)endpoint_set_flag(&server->endpoint, ENDPOINT_DOWN);
    else
        (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_DOWN);
    if (told->health == UPSTREAM_STATE_CHECKED_UP)
        atomic_store_explicit(&server->endpoint.is_checked, true, memory_order_relaxed);
}

static void upstream_state_use_time(struct response_time_wait *w, uint64_t ns, int64_t at_ns)
{
    if (at_ns <= clock_now_ns())
        response_time_restore(w, ns, at_ns);
}

/* The other process has counted how often it went down. */
static void upstream_state_use_health(struct upstream *up, struct upstream_server *server,
                                      const struct upstream_state_told *told)
{
    struct endpoint *e = &server->endpoint;
    uint64_t downs = atomic_load_explicit(&e->downs, memory_order_relaxed);

    upstream_state_use_flags(up, server, told);
    upstream_state_use_time(&e->times.connect, told->times.connect_ns, told->times.connect_at_ns);
    upstream_state_use_time(&e->times.first_byte, told->times.first_byte_ns,
                            told->times.first_byte_at_ns);
    if (told->is_in_use)
        upstream_in_use_continue(up, server);
    atomic_store_explicit(&e->downs, downs, memory_order_relaxed);
    if (told->changed_at_ns > 0 && told->changed_at_ns <= clock_now_ns())
        atomic_store_explicit(&e->changed_at_ns, told->changed_at_ns, memory_order_relaxed);
}

static struct upstream_server *upstream_state_find(struct upstream *up, const char *name)
{
    const struct server_set *set = membership_now(&up->membership);

    for (unsigned i = 0; i < set->n; i++) {
        unsigned at = (up->state.next + i) % set->n;

        if (strcmp(set->servers[at]->name, name) != 0)
            continue;
        up->state.next = at + 1;
        return set->servers[at];
    }
    return NULL;
}

/* A server that has left the set, and may return to it. */
static struct upstream_server *upstream_state_find_left(const struct upstream *up, const char *name)
{
    list_for_each (node, &up->membership.servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (!server->is_listed && strcmp(server->name, name) == 0)
            return server;
    }
    return NULL;
}

static struct upstream_state_server *upstream_state_find_expected(struct upstream *up,
                                                                  const char *name)
{
    struct upstream_state *st = &up->state;
    struct list *node = st->last;

    do {
        struct upstream_state_server *s;

        node = node->next;
        if (node == &st->expected)
            continue;
        s = LIST_ENTRY(node, struct upstream_state_server, link);
        if (strcmp(s->name, name) != 0)
            continue;
        st->last = node;
        return s;
    } while (node != st->last);
    return NULL;
}

static void upstream_state_forget(struct upstream_state *st, struct upstream_state_server *s)
{
    if (st->last == &s->link)
        st->last = s->link.prev;
    list_remove(&s->link);
    st->n_expected--;
    free(s);
}

static struct upstream_state_server *upstream_state_expect(struct upstream *up, const char *name)
{
    struct upstream_state *st = &up->state;
    struct upstream_state_server *s = upstream_state_find_expected(up, name);

    if (s)
        return s;
    s = calloc(1, sizeof(*s) + strlen(name) + 1);
    if (!s)
        return NULL;
    memcpy(s->name, name, strlen(name) + 1);
    if (st->n_expected == BALANCER_MAX_ENDPOINTS) /* drop the oldest: its server may never come */
        upstream_state_forget(st, LIST_FIRST(&st->expected, struct upstream_state_server, link));
    list_append(&st->expected, &s->link);
    st->n_expected++;
    return s;
}

static int upstream_state_continue_expected(struct upstream *up, const char *name,
                                            struct counters_report *report,
                                            const struct upstream_state_told *told)
{
    struct upstream_state_server *expected = upstream_state_expect(up, name);
    struct counters_set set;

    if (!expected)
        return -ENOMEM;
    if (told->health != UPSTREAM_STATE_UNKNOWN)
        expected->told = *told;
    upstream_state_expected_set(&set, expected, up->spares.ops);
    counters_set_report(&set, &expected->counters, report);
    return 0;
}

int upstream_state_continue_server(struct upstream *up, const char *name,
                                   struct counters_report *report, bool health)
{
    const struct upstream_state_told told = upstream_state_told_of(health ? report->text : "");
    struct upstream_server *server = upstream_state_find(up, name);
    struct counters_set set;

    if (!server && upstream_state_find_expected(up, name))
        return upstream_state_continue_expected(up, name, report, &told);
    if (!server)
        server = upstream_state_find_left(up, name);
    if (!server && report->of == 0)
        return upstream_state_continue_expected(up, name, report, &told);
    if (!server) {
        report->of = 0;
        return 0;
    }
    upstream_state_use_health(up, server, &told);
    upstream_state_server_set(&set, server);
    counters_set_report(&set, &server->counters, report);
    return 0;
}

bool upstream_state_expects_up(struct upstream *up, const char *name)
{
    const struct upstream_state_server *s = upstream_state_find_expected(up, name);

    return s && s->told.health != UPSTREAM_STATE_UNKNOWN && s->told.health != UPSTREAM_STATE_DOWN;
}

void upstream_state_came(struct upstream *up, struct upstream_server *server)
{
    struct upstream_state_server *s = upstream_state_find_expected(up, server->name);
    struct counters_set to, from;

    if (!s)
        return;
    upstream_state_use_health(up, server, &s->told);
    upstream_state_server_set(&to, server);
    upstream_state_expected_set(&from, s, server->spare ? up->spares.ops : NULL);
    counters_set_merge(&to, &from);
    if (server->counters.number == 0)
        server->counters.number = s->counters.number;
    upstream_state_forget(&up->state, s);
}
