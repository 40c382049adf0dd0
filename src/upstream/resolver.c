#include "upstream/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/executor.h"
#include "engine/loop.h"
#include "upstream/resolver_internal.h"

/* ---- on the executor ---- */

static void resolver_forget(struct resolver_name *name)
{
    resolver_free_found(name->found);
    name->found = NULL;
}

static void resolver_look_up_in(struct resolver_name *name, int64_t delay_ns)
{
    if (executor_schedule(name->resolver->conf.executor, &name->lookup, delay_ns) < 0)
        promise_cancel(&name->answered); /* the executor has ended: no more lookups */
}

static int64_t resolver_draw(struct resolver_name *name, int64_t least_ns, int64_t most_ns)
{
    uint64_t random = hash_mix(name->drawn++);

    return least_ns + (int64_t)((unsigned __int128)(uint64_t)(most_ns - least_ns) * random >> 64);
}

static int64_t resolver_retry_ns(const struct resolver_name *name)
{
    int64_t retry_ns = name->resolver->conf.retry_ns;
    int64_t interval_ns = name->upstream->conf->resolve_interval_ns;

    return interval_ns > 0 && interval_ns < retry_ns ? interval_ns : retry_ns;
}

/* Pause, with a jitter of one fifth. */
static int64_t resolver_pause(struct resolver_name *name, int64_t most_ns)
{
    return resolver_draw(name, most_ns - most_ns / 5, most_ns);
}

/*
 * Pause after a success: the TTL, at least the minimum, plus up to a quarter, within
 * resolve_interval. The first is up to half shorter, to separate names.
 */
static int64_t resolver_pause_known(struct resolver_name *name)
{
    const struct upstream_conf *conf = name->upstream->conf;
    const struct resolver_found_addresses *f = name->found;
    int64_t interval_ns = conf->resolve_interval_ns, min_ns = conf->resolve_interval_min_ns;
    int64_t ttl_ns = f->ttl_ns > min_ns ? f->ttl_ns : min_ns, most_ns, least_ns;

    if (f->service && f->service->n_failed > 0)
        return resolver_pause(name, resolver_retry_ns(name));
    if (interval_ns == 0)
        return 0;
    most_ns = ttl_ns < interval_ns - ttl_ns / 4 ? ttl_ns + ttl_ns / 4 : interval_ns;
    if (name->known)
        return resolver_pause(name, most_ns);
    least_ns = most_ns / 2 < min_ns && min_ns < most_ns ? min_ns : most_ns / 2;
    return resolver_draw(name, least_ns, most_ns);
}

static void resolver_run_lookup(struct task *t)
{
    struct resolver_name *name =
        CONTAINER_OF(CONTAINER_OF(t, struct timer, task), struct resolver_name, lookup);

    name->looked_up = resolver_look_up(name);
    if (name->looked_up == RESOLVER_MORE) {
        if (executor_submit_more(name->resolver->conf.executor, t) < 0)
            promise_cancel(&name->answered); /* the executor has ended */
        return;
    }
    if (loop_submit(name->resolver->conf.control, LOOP_CONTROL, &name->answer) == 0)
        return;
    resolver_forget(name);
    resolver_look_up_in(name, resolver_pause(name, resolver_retry_ns(name)));
}

static void resolver_drop_lookup(struct task *t)
{
    struct resolver_name *name =
        CONTAINER_OF(CONTAINER_OF(t, struct timer, task), struct resolver_name, lookup);

    promise_cancel(&name->answered);
}

static const struct task_type resolver_lookup_type = {
    .name = "look up a host name", .run = resolver_run_lookup, .drop = resolver_drop_lookup};

/* ---- on the control loop ---- */

/* Log an answer: the first, in time, as info; others as notices. */
static void resolver_log_known(struct resolver_name *name, bool moved)
{
    const struct upstream_server_conf *server = name->server;
    bool in_time = promise_set_uncancellable(&name->answered) && name->error == 0;
    const char *how = !name->known ? "is known"
                      : moved      ? "resolves to other addresses"
                                   : "is known again";
    char text[ADDRESS_TEXT_BYTES], more[32] = "";

    if (name->found->n > 1)
        snprintf(more, sizeof(more), " and %u more", name->found->n - 1);
    log_write(in_time && !name->known ? LOG_LEVEL_INFO : LOG_LEVEL_NOTICE,
              "upstream %s: server %s (%s): the name %s: %s%s", name->upstream->conf->name,
              server->id, server->address_text, how,
              address_format(text, sizeof(text), &name->found->list[0]), more);
}

static void resolver_log_failure(const struct resolver_name *name, int error)
{
    const struct upstream_server_conf *server = name->server;

    log_warning(
        "upstream %s: server %s (%s): cannot look up the name: %s; %strying again within %g s",
        name->upstream->conf->name, server->id, server->address_text, resolver_error_text(error),
        name->known ? "its addresses stay in use; " : "",
        (double)resolver_retry_ns(name) / NS_PER_S);
}

/*
 * How many addresses from ${i} on are one server: 2 for a host's only IPv4 and only IPv6 address,
 * else 1.
 */
static unsigned resolver_place_len(const struct resolver_found_addresses *f, unsigned i)
{
    unsigned n = 0;

    while (i + n < f->n && f->record[i + n] == f->record[i])
        n++;
    if ((i == 0 || f->record[i - 1] != f->record[i]) && n == 2 &&
        f->list[i].u.sa.sa_family != f->list[i + 1].u.sa.sa_family)
        return 2;
    return 1;
}

static int resolver_use_each(struct resolver_name *name)
{
    const struct resolver_found_addresses *f = name->found;
    struct membership_place places[RESOLVER_ADDRESSES];
    unsigned n = 0;

    for (unsigned i = 0; i < f->n; i += places[n++].n)
        places[n] = (struct membership_place){.list = &f->list[i],
                                              .n = resolver_place_len(f, i),
                                              .weight = f->weight[i],
                                              .level = f->level[i]};
    return membership_update(&name->upstream->membership, name->line, places, n);
}

/* Set the addresses of the one server of this name, which is in every set. */
static int resolver_use_all(struct resolver_name *name)
{
    const struct server_set *set = membership_now(&name->upstream->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (set->servers[i]->line == name->line)
            return upstream_set_addresses(name->upstream, set->servers[i], name->found->list,
                                          name->found->n);
    MUST(!"a line that is one server");
    return -ENOENT;
}

/* Keep a service's answer for hosts that fail later. */
static void resolver_keep(struct resolver_name *name)
{
    if (!name->found->service)
        return;
    resolver_free_found(name->last);
    name->last = name->found;
    name->found = NULL;
}

/* Returns the pause before the next lookup; 0: none. */
static int64_t resolver_answer(struct resolver_name *name)
{
    int64_t pause_ns;
    int rc = name->looked_up;

    if (rc == 0)
        rc = name->server->names == UPSTREAM_NAME_ONE ? resolver_use_all(name)
                                                      : resolver_use_each(name);
    if (rc < 0) {
        if (rc != name->error)
            resolver_log_failure(name, rc);
        name->error = rc;
        promise_fail(&name->answered, rc);
        return resolver_pause(name, resolver_retry_ns(name));
    }
    if (rc > 0 || name->error < 0)
        resolver_log_known(name, rc > 0);
    pause_ns = resolver_pause_known(name);
    name->known = true;
    name->error = 0;
    resolver_keep(name);
    promise_succeed(&name->answered);
    return pause_ns;
}

static void resolver_run_answer(struct task *t)
{
    struct resolver_name *name = CONTAINER_OF(t, struct resolver_name, answer);
    int64_t delay_ns = resolver_answer(name);

    resolver_forget(name);
    if (delay_ns > 0)
        resolver_look_up_in(name, delay_ns);
}

static void resolver_drop_answer(struct task *t)
{
    struct resolver_name *name = CONTAINER_OF(t, struct resolver_name, answer);

    resolver_forget(name);
    promise_cancel(&name->answered);
}

static const struct task_type resolver_answer_type = {.name = "use the addresses of a name",
                                                      .run = resolver_run_answer,
                                                      .drop = resolver_drop_answer};

/* ---- main ---- */

static bool resolver_is_asked(const struct upstream_server_conf *server)
{
    return server->names != UPSTREAM_LITERAL && !server->disabled;
}

static unsigned resolver_count(const struct resolver_conf *conf)
{
    unsigned n = 0;

    for (unsigned i = 0; i < conf->n_upstreams; i++)
        for (unsigned s = 0; s < conf->upstreams[i]->conf->n_servers; s++)
            n += resolver_is_asked(&conf->upstreams[i]->conf->servers[s]);
    return n;
}

static void resolver_add(struct resolver *r, struct upstream *up, unsigned line)
{
    struct resolver_name *name = &r->names[r->n_names++];

    name->resolver = r;
    name->drawn = hash_mix(r->conf.seed + r->n_names);
    name->upstream = up;
    name->server = &up->conf->servers[line];
    name->line = line;
    timer_init(&name->lookup, &resolver_lookup_type);
    name->answer.type = &resolver_answer_type;
    promise_init(&name->answered, NULL);
}

int resolver_create(struct resolver **out, const struct resolver_conf *conf)
{
    struct resolver *r = calloc(1, sizeof(*r) + resolver_count(conf) * sizeof(r->names[0]));

    if (!r)
        return -ENOMEM;
    r->conf = *conf;
    for (unsigned i = 0; i < conf->n_upstreams; i++) {
        struct upstream *up = conf->upstreams[i];

        for (unsigned line = 0; line < up->conf->n_servers; line++)
            if (resolver_is_asked(&up->conf->servers[line]))
                resolver_add(r, up, line);
    }
    *out = r;
    return 0;
}

unsigned resolver_names(const struct resolver *r)
{
    return r->n_names;
}

static int resolver_wait(struct resolver_name *name, int64_t until_ns)
{
    const struct upstream_server_conf *server = name->server;
    int rc = promise_await(&name->answered, until_ns - clock_now_ns());
    int error = rc == 0 ? promise_error(&name->answered) : rc;

    if (rc < 0 && promise_cancel(&name->answered))
        log_warning(
            "upstream %s: server %s (%s): the name is still being looked up; until then clients "
            "get other servers",
            name->upstream->conf->name, server->id, server->address_text);
    if (error == 0 || !name->upstream->conf->resolve_required)
        return 0;
    log_error(
        "upstream %s: server %s (%s): the name has no address yet, and resolve_required is set; "
        "not starting",
        name->upstream->conf->name, server->id, server->address_text);
    return -ENODATA;
}

int resolver_start(struct resolver *r, int64_t wait_ns)
{
    int64_t until_ns = clock_add_ns(clock_now_ns(), wait_ns);
    int result = 0;

    for (unsigned i = 0; i < r->n_names; i++) {
        int rc = executor_schedule(r->conf.executor, &r->names[i].lookup, 0);

        if (rc < 0) {
            log_error("executor: cannot start a thread: %s", strerror(-rc));
            return rc;
        }
    }
    for (unsigned i = 0; i < r->n_names; i++)
        if (resolver_wait(&r->names[i], until_ns) < 0)
            result = -ENODATA;
    return result;
}

void resolver_destroy(struct resolver *r)
{
    if (!r)
        return;
    for (unsigned i = 0; i < r->n_names; i++) {
        promise_close(&r->names[i].answered);
        resolver_free_found(r->names[i].found);
        resolver_free_found(r->names[i].last);
    }
    free(r);
}
