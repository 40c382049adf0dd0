/* names/resolver_name: lookups of one name, and use of the answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/executor.h"
#include "engine/loop.h"
#include "names/resolver_internal.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"

/* Pause before an answer is applied again, while a reload prepares the upstream. */
#define RESOLVER_BUSY_NS (20 * NS_PER_MS)

static void resolver_name_forget(struct resolver_name *name)
{
    resolver_free_found(name->found);
    name->found = NULL;
}

static void resolver_name_release(struct resolver_name *name)
{
    if (name->listeners)
        name->resolver->conf.release(name->listeners);
    name->listeners = NULL;
}

static int64_t resolver_name_draw(struct resolver_name *name, int64_t least_ns, int64_t most_ns)
{
    uint64_t random = hash_mix(name->drawn++);

    return least_ns + (int64_t)((unsigned __int128)(uint64_t)(most_ns - least_ns) * random >> 64);
}

int64_t resolver_name_retry_ns(const struct resolver_name *name)
{
    int64_t retry_ns = name->resolver->conf.retry_ns;
    int64_t interval_ns = name->upstream->conf->resolve_interval_ns;

    return interval_ns > 0 && interval_ns < retry_ns ? interval_ns : retry_ns;
}

/* ${most_ns} less a random jitter of up to one fifth. */
static int64_t resolver_name_pause_ns(struct resolver_name *name, int64_t most_ns)
{
    return resolver_name_draw(name, most_ns - most_ns / 5, most_ns);
}

/*
 * Pause after a success: the TTL, at least resolve_interval_min, plus up to a quarter,
 * within resolve_interval. The first pause may be half as long, to spread the names. With failed
 * SRV hosts: the pause of a failure. 0: no next lookup.
 */
static int64_t resolver_name_known_ns(struct resolver_name *name)
{
    const struct upstream_conf *conf = name->upstream->conf;
    const struct resolver_found_addresses *f = name->found;
    int64_t interval_ns = conf->resolve_interval_ns, min_ns = conf->resolve_interval_min_ns;
    int64_t ttl_ns = f->ttl_ns > min_ns ? f->ttl_ns : min_ns, most_ns, least_ns;

    if (f->kept || (f->service && f->service->n_failed > 0))
        return resolver_name_pause_ns(name, resolver_name_retry_ns(name));
    if (interval_ns == 0)
        return 0;
    most_ns = ttl_ns < interval_ns - ttl_ns / 4 ? ttl_ns + ttl_ns / 4 : interval_ns;
    if (name->known)
        return resolver_name_pause_ns(name, most_ns);
    least_ns = most_ns / 2 < min_ns && min_ns < most_ns ? min_ns : most_ns / 2;
    return resolver_name_draw(name, least_ns, most_ns);
}

static void resolver_name_pause(struct resolver_name *name, int64_t pause_ns)
{
    if (pause_ns > 0)
        loop_schedule(name->resolver->conf.control, &name->pause, pause_ns);
}

static void resolver_name_run_pause(struct task *t)
{
    struct resolver_name *name = TIMER_OWNER(t, struct resolver_name, pause);
    int rc;

    if (name->has_answer) {
        resolver_name_use_soon(name);
        return;
    }
    rc = resolver_name_look_up(name, name->resolver->listeners);
    if (rc < 0 && rc != -ESHUTDOWN)
        resolver_name_pause(name, resolver_name_pause_ns(name, resolver_name_retry_ns(name)));
}

/* No drop(): resolver_destroy() frees the name. */
static const struct task_type resolver_pause_type = {.name = "time to look up a host name",
                                                     .run = resolver_name_run_pause};

/*
 * Number of addresses of the server at index ${i}: 2 for a host with one IPv4 and one IPv6 address,
 * else 1.
 */
static unsigned resolver_name_place_len(const struct resolver_found_addresses *f, unsigned i)
{
    unsigned n = 0;

    while (i + n < f->n && f->record[i + n] == f->record[i])
        n++;
    if ((i == 0 || f->record[i - 1] != f->record[i]) && n == 2 &&
        f->list[i].u.sa.sa_family != f->list[i + 1].u.sa.sa_family)
        return 2;
    return 1;
}

unsigned resolver_name_places(const struct resolver_name *name,
                              const struct upstream_server_conf *line,
                              struct membership_place *places)
{
    const struct resolver_found_addresses *f = name->found;
    unsigned n = 0;

    for (unsigned i = 0; i < f->n; i += places[n++].n)
        places[n] = (struct membership_place){
            .list = &f->list[i],
            .n = name->names == UPSTREAM_NAME_ONE ? f->n : resolver_name_place_len(f, i),
            .weight = f->service ? f->weight[i] : line->weight,
            .level = f->service ? f->level[i] : 0};
    return n;
}

static int resolver_name_use_each(struct resolver_name *name, bool *kept)
{
    bool is_late = name->moving_until_ns > 0 && clock_now_ns() >= name->moving_until_ns;
    struct membership_place places[RESOLVER_ADDRESSES];
    unsigned n = resolver_name_places(name, &name->line->conf, places);

    return membership_update(&name->upstream->membership, name->line, places, n,
                             is_late ? NULL : kept);
}

static int resolver_name_use_all(struct resolver_name *name)
{
    const struct server_set *set = membership_now(&name->upstream->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (set->servers[i]->line == name->line)
            return upstream_set_addresses(name->upstream, set->servers[i], name->found->list,
                                          name->found->n);
    MUST(!"a line that is one server");
    return -ENOENT;
}

/* Keep a service's answer, for hosts whose next lookup fails. */
static void resolver_name_keep(struct resolver_name *name)
{
    if (!name->found->service)
        return;
    resolver_free_found(name->last);
    name->last = name->found;
    name->found = NULL;
}

/* Note a failed lookup; return the pause before the next one. */
static int64_t resolver_name_fail(struct resolver_name *name, int error)
{
    int64_t pause_ns = resolver_name_pause_ns(name, resolver_name_retry_ns(name)), left_ns;
    int rc;

    name->late = true;
    if (error == -ENOENT && name->known) {
        left_ns = resolver_hold_left_ns(name);
        rc = left_ns <= 0 ? resolver_hold_end(name) : 0;
        name->has_answer = rc == -EBUSY;
        if (rc == -EBUSY)
            return RESOLVER_BUSY_NS;
        if (left_ns > 0 && left_ns < pause_ns)
            pause_ns = left_ns;
    }
    if (error != name->error)
        resolver_log_failure(name, error);
    name->error = error;
    return pause_ns;
}

/* Apply the answer; return the pause before the next lookup (0: none) or the next attempt. */
static int64_t resolver_name_apply(struct resolver_name *name)
{
    bool kept = false, was_moving = name->moving_until_ns > 0;
    int64_t pause_ns;
    int rc = name->looked_up;

    if (rc == 0)
        rc = name->names == UPSTREAM_NAME_ONE ? resolver_name_use_all(name)
                                              : resolver_name_use_each(name, &kept);
    name->has_answer = rc == -EBUSY;
    if (rc == -EBUSY)
        return RESOLVER_BUSY_NS;
    if (rc < 0 || !kept)
        name->moving_until_ns = 0;
    if (rc < 0)
        return resolver_name_fail(name, rc);
    if ((rc > 0 && !was_moving) || name->error < 0 || !name->known)
        resolver_log_known(name, rc > 0);
    if (kept && !was_moving)
        name->moving_until_ns =
            clock_add_ns(clock_now_ns(), upstream_first_checks_ns(name->upstream->conf));
    pause_ns = resolver_name_known_ns(name);
    name->known = true;
    name->error = 0;
    resolver_hold_found(name);
    resolver_cache_put(&name->resolver->cache, name->cached, name->found, name->answered_at_ns);
    name->has_answer = kept;
    if (kept)
        return RESOLVER_BUSY_NS;
    resolver_name_keep(name);
    return pause_ns;
}

/* The rest of a pause that began when the answer came. */
static int64_t resolver_name_left_ns(const struct resolver_name *name, int64_t pause_ns)
{
    int64_t left_ns = pause_ns - (clock_now_ns() - name->answered_at_ns);

    return pause_ns > 0 && left_ns <= 0 ? 1 : left_ns;
}

void resolver_name_use(struct resolver_name *name)
{
    int64_t pause_ns = resolver_name_apply(name);

    if (!name->has_answer) {
        resolver_name_forget(name);
        pause_ns = resolver_name_left_ns(name, pause_ns);
    }
    resolver_name_pause(name, pause_ns);
    if (!name->has_answer && name->checks_loops)
        resolver_name_hurry(name, true);
}

static void resolver_name_run_answer(struct task *t)
{
    struct resolver_name *name = CONTAINER_OF(t, struct resolver_name, answer);
    bool is_old = name->listeners && name->listeners != name->resolver->listeners;

    name->is_under_way = false;
    name->checks_loops |= is_old && !name->change;
    if (!name->has_answer) {
        name->answered_at_ns = clock_now_ns();
        if (name->looked_up == 0 && !name->is_removed)
            resolver_hold_families(name);
    }
    resolver_name_release(name);
    if (name->is_removed) {
        list_remove(&name->link);
        resolver_name_free(name);
    } else if (name->change) {
        name->has_answer = true;
        resolver_answered(name);
    } else {
        resolver_name_use(name);
    }
}

/* No drop(): resolver_destroy() frees the name. */
static const struct task_type resolver_answer_type = {.name = "use the addresses of a name",
                                                      .run = resolver_name_run_answer};

void resolver_name_use_soon(struct resolver_name *name)
{
    name->is_under_way = true;
    if (loop_submit(name->resolver->conf.control, LOOP_CONTROL, &name->answer) < 0)
        name->is_under_way = false; /* the loop ends */
}

/* Runs on an executor thread. -ESHUTDOWN: resolver_destroy() will free the name. */
static void resolver_name_run_lookup(struct task *t)
{
    struct resolver_name *name = TIMER_OWNER(t, struct resolver_name, lookup);
    int rc;

    name->looked_up = resolver_look_up(name);
    if (name->looked_up == RESOLVER_MORE)
        rc = executor_submit_more(name->resolver->conf.executor, t);
    else
        rc = loop_submit(name->resolver->conf.control, LOOP_CONTROL, &name->answer);
    MUST(rc == 0 || rc == -ESHUTDOWN);
}

/* No drop(): resolver_destroy() frees the name. */
static const struct task_type resolver_lookup_type = {.name = "look up a host name",
                                                      .run = resolver_name_run_lookup};

int resolver_name_look_up(struct resolver_name *name, struct proxy_loop *listeners)
{
    const struct resolver_conf *conf = &name->resolver->conf;
    int rc;

    MUST(loop_is_current(conf->control) && !name->is_under_way);
    name->listeners = listeners;
    conf->hold(listeners);
    name->is_under_way = true;
    name->due_at_ns = clock_now_ns();
    rc = executor_schedule(conf->executor, &name->lookup, 0);
    if (rc < 0) {
        name->is_under_way = false;
        resolver_name_release(name);
    }
    return rc;
}

static const char *resolver_name_copy(char **to, const char *text)
{
    char *copy = *to;

    *to = stpcpy(copy, text) + 1;
    return copy;
}

int resolver_name_create(struct resolver_name **out, struct resolver *r, struct upstream *up,
                         const struct upstream_server_conf *conf, struct name_servers *servers)
{
    const char *by = servers ? ", resolver " : "", *section = servers ? servers->name : "";
    size_t word_bytes = strlen(conf->address_text) + 1;
    size_t bytes =
        strlen(up->name) + 1 + strlen(conf->id) + 1 + 2 * word_bytes + strlen(by) + strlen(section);
    struct resolver_name *name = calloc(1, sizeof(*name) + bytes);
    char *text;

    if (!name)
        return -ENOMEM;
    name->cached = resolver_cache_take(&r->cache, conf->names, conf->address_text, servers);
    if (!name->cached) {
        free(name);
        return -ENOMEM;
    }
    text = (char *)(name + 1);
    name->upstream_name = resolver_name_copy(&text, up->name);
    name->id = resolver_name_copy(&text, conf->id);
    name->word = resolver_name_copy(&text, conf->address_text);
    name->shown = text;
    stpcpy(stpcpy(stpcpy(text, conf->address_text), by), section);
    name->names = conf->names;
    name->servers = name_servers_hold(servers);
    name->resolver = r;
    name->upstream = up;
    name->drawn = hash_mix(r->conf.seed + ++r->n_added);
    timer_init(&name->lookup, &resolver_lookup_type);
    timer_init(&name->pause, &resolver_pause_type);
    name->answer.type = &resolver_answer_type;
    list_init(&name->link);
    *out = name;
    return 0;
}

void resolver_name_free(struct resolver_name *name)
{
    resolver_name_release(name);
    resolver_free_found(name->found);
    resolver_free_found(name->last);
    server_line_release(name->line);
    resolver_cache_release(&name->resolver->cache, name->cached);
    name_servers_release(name->servers);
    free(name);
}

static bool resolver_name_any_leads_back(const struct resolver_name *name,
                                         const struct endpoint_addresses *at)
{
    const struct resolver *r = name->resolver;

    for (unsigned i = 0; at && i < at->n; i++)
        if (r->conf.leads_back(r->listeners, name->upstream_name, &at->list[i]))
            return true;
    return false;
}

static bool resolver_name_leads_back(const struct resolver_name *name)
{
    const struct server_set *set = membership_now(&name->upstream->membership);
    bool leads_back = false;

    for (unsigned i = 0; i < set->n && !leads_back; i++)
        if (set->servers[i]->line == name->line) {
            struct endpoint_addresses *at = endpoint_hold_addresses(&set->servers[i]->endpoint);

            leads_back = resolver_name_any_leads_back(name, at);
            endpoint_release_addresses(at);
        }
    return leads_back;
}

/* Longest pause before the next lookup; 0: no next lookup. */
static int64_t resolver_name_most_ns(const struct resolver_name *name)
{
    bool failed = !name->known || name->error < 0 || name->kept ||
                  (name->last && name->last->service->n_failed);

    return failed ? resolver_name_retry_ns(name) : name->upstream->conf->resolve_interval_ns;
}

void resolver_name_hurry(struct resolver_name *name, bool check_loops)
{
    int64_t most_ns = resolver_name_most_ns(name), pause_ns;
    bool now;

    name->checks_loops |= check_loops && name->has_answer;
    if (name->is_under_way || name->has_answer)
        return; /* the answer will use the current intervals */
    name->checks_loops = false;
    now = check_loops && resolver_name_leads_back(name);
    if (!now && name->pause.state != TIMER_IDLE &&
        name->pause.at_ns <= clock_add_ns(clock_now_ns(), most_ns))
        return;
    pause_ns = now ? 1 : resolver_name_draw(name, most_ns / 2, most_ns);
    loop_cancel(name->resolver->conf.control, &name->pause);
    resolver_name_pause(name, pause_ns);
}

void resolver_name_remove(struct resolver_name *name)
{
    list_remove(&name->link);
    loop_cancel(name->resolver->conf.control, &name->pause);
    if (name->is_under_way) {
        name->is_removed = true;
        list_append(&name->resolver->removed, &name->link);
    } else {
        resolver_name_free(name);
    }
}
