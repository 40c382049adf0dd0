#include "names/resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/loop.h"
#include "names/resolver_internal.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"

static bool resolver_is_asked(const struct upstream_server_conf *line)
{
    return line->names != UPSTREAM_LITERAL && !line->disabled;
}

unsigned resolver_names(const struct upstream_next *list, unsigned n)
{
    unsigned names = 0;

    for (unsigned i = 0; i < n; i++)
        for (unsigned s = 0; s < list[i].conf->n_servers; s++)
            names += resolver_is_asked(&list[i].conf->servers[s]);
    return names;
}

static void resolver_make_ready(struct resolver_change *change)
{
    struct loop *control = change->resolver->conf.control;

    loop_cancel(control, &change->timer);
    loop_schedule(control, &change->timer, 0);
}

static void resolver_run_ready(struct task *t)
{
    struct resolver_change *change = TIMER_OWNER(t, struct resolver_change, timer);

    change->is_ready = true;
    change->next.ready(change->next.cookie, resolver_look_at_all(change));
}

static const struct task_type resolver_ready_type = {.name = "names are looked up",
                                                     .run = resolver_run_ready};

static bool resolver_is_name_of(const struct resolver_name *name, const struct upstream *up,
                                const struct upstream_server_conf *line)
{
    return name->upstream == up && name->names == line->names && strcmp(name->id, line->id) == 0 &&
           strcmp(name->word, line->address_text) == 0;
}

/* Search from ${from} and wrap around: lines mostly keep their order. */
static struct resolver_name *resolver_find(const struct resolver *r, struct list *from,
                                           const struct upstream *up,
                                           const struct upstream_server_conf *line,
                                           const struct name_servers *servers)
{
    struct list *node = from;

    do {
        if (node != &r->names) {
            struct resolver_name *name = LIST_ENTRY(node, struct resolver_name, link);

            if (resolver_is_name_of(name, up, line) && name_servers_same(name->servers, servers))
                return name;
        }
        node = node->next;
    } while (node != from);
    return NULL;
}

static bool resolver_has_literal(const struct upstream_conf *conf)
{
    for (unsigned i = 0; i < conf->n_servers; i++)
        if (conf->servers[i].names == UPSTREAM_LITERAL &&
            upstream_server_is_used(&conf->servers[i]))
            return true;
    return false;
}

static int resolver_add_steps(struct resolver_change *change)
{
    struct resolver *r = change->resolver;
    struct list *from = r->names.next;

    for (unsigned i = 0; i < change->next.n; i++) {
        struct upstream *up = change->next.list[i].upstream;
        const struct upstream_conf *conf = change->next.list[i].conf;
        bool is_alone = !resolver_has_literal(conf);

        for (unsigned s = 0; s < conf->n_servers; s++) {
            const struct upstream_server_conf *line = &conf->servers[s];
            struct resolver_step *step = &change->steps[change->n];
            int rc;

            if (!resolver_is_asked(line))
                continue;
            step->position = s;
            step->is_required = conf->resolve_required;
            step->is_used = upstream_server_is_used(line);
            step->is_alone = is_alone;
            step->name = resolver_find(r, from, up, line, conf->resolver.servers);
            if (step->name) {
                from = step->name->link.next;
            } else {
                rc = resolver_name_create(&step->name, r, up, line, conf->resolver.servers);
                if (rc < 0)
                    return rc;
                step->name->change = change;
                step->is_new = true;
            }
            change->n++;
        }
    }
    return 0;
}

static int resolver_look_up_new(struct resolver_change *change)
{
    for (unsigned i = 0; i < change->n; i++) {
        struct resolver_name *name = change->steps[i].name;
        int rc;

        if (!name->change || resolver_recall(name, change->next.listeners))
            continue;
        rc = resolver_name_look_up(name, change->next.listeners);
        if (rc < 0) {
            log_error("lookups: cannot start a thread: %s; no name is looked up", strerror(-rc));
            return rc;
        }
        change->n_waiting++;
    }
    return 0;
}

int resolver_prepare(struct resolver *r, const struct resolver_next *next,
                     struct resolver_change **out)
{
    unsigned n = resolver_names(next->list, next->n);
    struct resolver_change *change = calloc(1, sizeof(*change) + n * sizeof(change->steps[0]));
    struct loop *control = r->conf.control;
    int rc;

    MUST(loop_is_current(control) && !r->change);
    if (!change)
        return -ENOMEM;
    change->resolver = r;
    change->next = *next;
    timer_init(&change->timer, &resolver_ready_type);
    r->conf.hold(next->listeners);
    r->change = change;
    rc = resolver_add_steps(change);
    if (rc == 0)
        rc = resolver_look_up_new(change);
    if (rc < 0) {
        resolver_cancel(change);
        return rc;
    }
    change->next.list = NULL; /* the caller's list */
    loop_schedule(control, &change->timer, change->n_waiting > 0 ? next->wait_ns : 0);
    *out = change;
    return 0;
}

unsigned resolver_find_places(const struct resolver_change *change, const struct upstream *up,
                              const struct upstream_server_conf *line,
                              struct membership_place *places)
{
    for (unsigned i = 0; i < change->n; i++) {
        const struct resolver_name *name = change->steps[i].name;

        if (name->change && resolver_is_name_of(name, up, line))
            return resolver_is_known(name) ? resolver_name_places(name, line, places) : 0;
    }
    return 0;
}

/* Free ${change}, but not its names. */
static void resolver_end(struct resolver_change *change)
{
    struct resolver *r = change->resolver;

    loop_cancel(r->conf.control, &change->timer);
    r->change = NULL;
    free(change);
}

void resolver_cancel(struct resolver_change *change)
{
    struct resolver *r = change->resolver;

    MUST(loop_is_current(r->conf.control));
    for (unsigned i = 0; i < change->n; i++)
        if (change->steps[i].name->change)
            resolver_name_remove(change->steps[i].name);
    r->conf.release(change->next.listeners);
    resolver_end(change);
}

/* Reference the line of ${name}, which is most likely at ${position}. */
static void resolver_bind(struct resolver_name *name, unsigned position)
{
    const struct membership *m = &name->upstream->membership;
    bool is_there = position < m->n_lines && strcmp(m->lines[position]->conf.id, name->id) == 0;
    struct server_line *line = is_there ? m->lines[position] : membership_find_line(m, name->id);

    MUST(line);
    server_line_release(name->line);
    name->line = server_line_hold(line);
}

static void resolver_remove_others(struct resolver *r)
{
    list_for_each_safe (node, &r->names) {
        struct resolver_name *name = LIST_ENTRY(node, struct resolver_name, link);

        if (name->is_kept)
            name->is_kept = false;
        else
            resolver_name_remove(name);
    }
}

void resolver_answered(struct resolver_name *name)
{
    struct resolver_change *change = name->change;

    if (--change->n_waiting == 0 && !change->is_ready)
        resolver_make_ready(change);
}

void resolver_commit(struct resolver_change *change)
{
    struct resolver *r = change->resolver;
    bool moved = r->listeners != change->next.listeners;

    MUST(loop_is_current(r->conf.control) && change->is_ready);
    for (unsigned i = 0; i < change->n; i++) {
        struct resolver_step *step = &change->steps[i];

        resolver_bind(step->name, step->position);
        step->name->is_kept = !step->name->change;
    }
    resolver_remove_others(r);
    r->conf.release(r->listeners);
    r->listeners = change->next.listeners;
    for (unsigned i = 0; i < change->n; i++) {
        struct resolver_name *name = change->steps[i].name;

        if (!name->change) {
            resolver_name_hurry(name, moved);
            continue;
        }
        name->change = NULL;
        list_append(&r->names, &name->link);
        if (name->has_answer)
            resolver_name_use_soon(name);
    }
    resolver_cache_drop_unused(&r->cache);
    resolver_end(change);
}

int resolver_create(struct resolver **out, const struct resolver_conf *conf)
{
    struct resolver *r = calloc(1, sizeof(*r));

    if (!r)
        return -ENOMEM;
    r->conf = *conf;
    list_init(&r->names);
    list_init(&r->removed);
    resolver_cache_init(&r->cache);
    lookup_share_open(&r->share);
    *out = r;
    return 0;
}

void resolver_write(struct resolver *r, FILE *f)
{
    resolver_cache_write(&r->cache, f);
}

int resolver_read(struct resolver *r, const char *text)
{
    return resolver_cache_read(&r->cache, text);
}

static void resolver_free_all(struct list *names)
{
    list_for_each_safe (node, names)
        resolver_name_free(LIST_ENTRY(node, struct resolver_name, link));
}

void resolver_destroy(struct resolver *r)
{
    if (!r)
        return;
    if (r->change) {
        for (unsigned i = 0; i < r->change->n; i++)
            if (r->change->steps[i].name->change)
                resolver_name_free(r->change->steps[i].name);
        r->conf.release(r->change->next.listeners);
        free(r->change);
    }
    resolver_free_all(&r->names);
    resolver_free_all(&r->removed);
    resolver_cache_close(&r->cache);
    lookup_share_close(&r->share);
    r->conf.release(r->listeners);
    free(r);
}
