#include "server/upstreams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "engine/lock.h"
#include "engine/loop.h"
#include "names/resolver.h"
#include "server/server_conf.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

/*
 *   NEW --commit--> CONFIGURED --commit without it--> REMOVED --no user is left--> EMPTY --> freed
 */
enum upstreams_state { UPSTREAMS_NEW, UPSTREAMS_CONFIGURED, UPSTREAMS_REMOVED, UPSTREAMS_EMPTY };

struct upstreams_entry {
    struct list link;
    struct upstream *up;
    enum upstreams_state state;
    struct upstream_change *change; /* built by upstreams_complete(); NULL: none */
    struct upstream_conf empty;     /* configuration without servers, to remove all servers */
};

struct upstreams {
    struct upstream_env env;
    struct loop *control;
    struct lock lock; /* guards `entries` and their states, which only the control loop changes */
    struct list entries;
    struct timer sweep; /* runs while something is to be freed */
    bool is_being_changed;
};

struct upstreams_change {
    struct upstreams *us;
    const struct server_conf *conf;
    unsigned n;
    struct upstream_next *next;
    struct upstreams_entry **entries; /* of the upstreams in `next` */
    bool keeps_unchanged;
};

static struct upstreams_entry *upstreams_entry_of(const struct upstreams *us, const char *name,
                                                  size_t len)
{
    list_for_each (node, &us->entries) {
        struct upstreams_entry *e = LIST_ENTRY(node, struct upstreams_entry, link);

        if (e->state == UPSTREAMS_CONFIGURED && strncmp(e->up->name, name, len) == 0 &&
            e->up->name[len] == '\0')
            return e;
    }
    return NULL;
}

struct upstream *upstreams_configured(const struct upstreams *us, const char *name, size_t len)
{
    const struct upstreams_entry *e = upstreams_entry_of(us, name, len);

    return e ? e->up : NULL;
}

static void upstreams_free_entry(struct upstreams_entry *e)
{
    upstream_change_cancel(e->change);
    upstream_destroy(e->up);
    free(e);
}

static int upstreams_create_entry(struct upstreams_entry **out, const struct upstreams *us,
                                  const struct upstream_conf *conf)
{
    struct upstreams_entry *e = calloc(1, sizeof(*e));
    int rc;

    if (!e)
        return -ENOMEM;
    list_init(&e->link);
    rc = upstream_create(&e->up, conf, &us->env);
    if (rc < 0) {
        free(e);
        return rc;
    }
    e->empty = (struct upstream_conf){.name = e->up->name};
    *out = e;
    return 0;
}

static bool upstreams_may_be_freed(const struct upstreams_entry *e)
{
    return e->state == UPSTREAMS_EMPTY && upstream_is_unused(e->up);
}

/*
 * If ${e} was removed and has no users, remove its servers, which closes their spare connections.
 * A later sweep, after the grace period of this removal, frees the upstream too. True if ${e} must
 * be swept again.
 */
static bool upstreams_sweep_entry(struct upstreams *us, struct upstreams_entry *e)
{
    bool has_garbage;

    if (e->state == UPSTREAMS_REMOVED && upstream_is_unused(e->up)) {
        upstream_change_commit(e->change);
        e->change = NULL;
        lock_take(&us->lock);
        e->state = UPSTREAMS_EMPTY;
        lock_release(&us->lock);
    }
    has_garbage = upstream_sweep_unused(e->up);
    if (e->state == UPSTREAMS_CONFIGURED || has_garbage || !upstreams_may_be_freed(e))
        return e->state != UPSTREAMS_CONFIGURED || has_garbage;
    lock_take(&us->lock);
    list_remove(&e->link);
    lock_release(&us->lock);
    upstreams_free_entry(e);
    return false;
}

bool upstreams_sweep(struct upstreams *us)
{
    bool is_left = false;

    list_for_each_safe (node, &us->entries)
        is_left |= upstreams_sweep_entry(us, LIST_ENTRY(node, struct upstreams_entry, link));
    return is_left;
}

static void upstreams_run_sweep(struct task *t)
{
    struct upstreams *us = TIMER_OWNER(t, struct upstreams, sweep);

    if (upstreams_sweep(us))
        loop_schedule(us->control, &us->sweep, UPSTREAMS_SWEEP_NS);
}

/* No drop(): upstreams_destroy() frees all. */
static const struct task_type upstreams_sweep_type = {.name = "free removed servers",
                                                      .run = upstreams_run_sweep};

static int upstreams_prepare_one(struct upstreams_change *change, const struct upstream_conf *conf)
{
    struct upstreams_entry *e = upstreams_entry_of(change->us, conf->name, strlen(conf->name));
    int rc = e ? 0 : upstreams_create_entry(&e, change->us, conf);

    if (rc < 0)
        return rc;
    change->entries[change->n] = e;
    change->next[change->n++] = (struct upstream_next){e->up, conf};
    return 0;
}

int upstreams_prepare(struct upstreams *us, const struct server_conf *conf,
                      struct upstreams_change **out)
{
    struct upstreams_change *change = calloc(1, sizeof(*change));
    int rc = 0;

    MUST(!us->is_being_changed);
    if (!change)
        return -ENOMEM;
    if (loop_is_current(us->control))
        (void)upstreams_sweep(us); /* so that reloads in a row keep at most two sets of servers */
    us->is_being_changed = true;
    change->us = us;
    change->conf = conf;
    change->next = calloc((size_t)conf->n_upstreams + 1, sizeof(*change->next));
    change->entries = calloc((size_t)conf->n_upstreams + 1, sizeof(struct upstreams_entry *));
    if (!change->next || !change->entries)
        rc = -ENOMEM;
    for (unsigned i = 0; i < conf->n_upstreams && rc == 0; i++)
        rc = upstreams_prepare_one(change, &conf->upstreams[i]);
    if (rc < 0) {
        upstreams_cancel(change);
        return rc;
    }
    *out = change;
    return 0;
}

struct upstream *upstreams_find(const struct upstreams_change *change, const char *name)
{
    for (unsigned i = 0; i < change->n; i++)
        if (strcmp(change->next[i].upstream->name, name) == 0)
            return change->next[i].upstream;
    return NULL;
}

const struct upstream_next *upstreams_next(const struct upstreams_change *change, unsigned *n)
{
    *n = change->n;
    return change->next;
}

static int upstreams_complete_names(struct upstreams_entry *e, const struct upstream_conf *conf,
                                    upstreams_places *places, const void *cookie)
{
    struct membership_place list[RESOLVER_ADDRESSES];
    int rc = 0;

    for (unsigned i = 0; i < conf->n_servers && rc == 0; i++) {
        const struct upstream_server_conf *server = &conf->servers[i];
        unsigned n = server->names == UPSTREAM_LITERAL ? 0 : places(cookie, e->up, server, list);

        if (n > 0)
            rc = upstream_change_places(e->change, upstream_change_line(e->change, server->id),
                                        list, n);
    }
    return rc == 0 ? upstream_change_build(e->change) : rc;
}

/* Does ${change} leave its upstream ${i} as it is? */
static bool upstreams_keeps(const struct upstreams_change *change, unsigned i)
{
    const struct upstreams_entry *e = change->entries[i];
    const struct upstream_conf *conf = change->next[i].conf;

    return change->keeps_unchanged && e->state == UPSTREAMS_CONFIGURED && conf->memory &&
           conf->memory == atomic_load(&e->up->conf)->memory;
}

void upstreams_keep_unchanged(struct upstreams_change *change)
{
    change->keeps_unchanged = true;
}

bool upstreams_is_settled(const struct upstreams_change *change)
{
    bool is_settled = true;

    for (unsigned i = 0; i < change->n; i++)
        if (!upstreams_keeps(change, i))
            is_settled &= upstream_change_is_settled(change->entries[i]->up);
    return is_settled;
}

static int upstreams_complete_one(const struct upstreams_change *change, unsigned i,
                                  upstreams_places *places, const void *cookie)
{
    struct upstreams_entry *e = change->entries[i];
    const struct upstream_conf *conf = change->next[i].conf;
    int rc;

    if (upstreams_keeps(change, i))
        return 0;
    rc = upstream_change_prepare(&e->change, e->up, conf);
    return rc == 0 ? upstreams_complete_names(e, conf, places, cookie) : rc;
}

static bool upstreams_has(const struct upstreams_change *change, const struct upstreams_entry *e)
{
    for (unsigned i = 0; i < change->n; i++)
        if (change->entries[i] == e)
            return true;
    return false;
}

static bool upstreams_removes(const struct upstreams_change *change,
                              const struct upstreams_entry *e)
{
    return e->state == UPSTREAMS_CONFIGURED && !upstreams_has(change, e);
}

int upstreams_complete(struct upstreams_change *change, upstreams_places *places,
                       const void *cookie)
{
    int rc = 0;

    for (unsigned i = 0; i < change->n && rc == 0; i++)
        rc = upstreams_complete_one(change, i, places, cookie);
    list_for_each (node, &change->us->entries) {
        struct upstreams_entry *e = LIST_ENTRY(node, struct upstreams_entry, link);

        if (rc == 0 && upstreams_removes(change, e))
            rc = upstream_change_prepare(&e->change, e->up, &e->empty);
    }
    return rc;
}

struct upstreams_each {
    upstreams_visit *visit;
    void *cookie;
    unsigned i;
};

static int upstreams_visit_one(void *cookie, struct upstream_server *server,
                               const struct upstream_server_conf *line)
{
    const struct upstreams_each *each = cookie;

    return each->visit(each->cookie, each->i, server, line);
}

int upstreams_each_new(const struct upstreams_change *change, upstreams_visit *visit, void *cookie)
{
    struct upstreams_each each = {.visit = visit, .cookie = cookie};
    int rc = 0;

    for (; each.i < change->n && rc == 0; each.i++)
        if (change->entries[each.i]->change)
            rc = upstream_change_each_new(change->entries[each.i]->change, upstreams_visit_one,
                                          &each);
    return rc;
}

static void upstreams_free_change(struct upstreams_change *change)
{
    change->us->is_being_changed = false;
    free(change->next);
    free(change->entries);
    free(change);
}

/* Remove upstreams. They keep e->change, which removes their servers, until they have no users. */
static void upstreams_commit_removals(const struct upstreams_change *change)
{
    struct upstreams *us = change->us;

    list_for_each (node, &us->entries) {
        struct upstreams_entry *e = LIST_ENTRY(node, struct upstreams_entry, link);

        if (!upstreams_removes(change, e))
            continue;
        MUST(e->change);
        lock_take(&us->lock);
        e->state = UPSTREAMS_REMOVED;
        lock_release(&us->lock);
    }
}

static void upstreams_commit_one(const struct upstreams_change *all, struct upstreams_entry *e)
{
    struct upstreams *us = all->us;
    struct upstream_change *change = e->change;
    bool is_new = e->state == UPSTREAMS_NEW;

    MUST(change || is_new || all->keeps_unchanged);
    lock_take(&us->lock);
    list_remove(&e->link);
    list_append(&us->entries, &e->link); /* moves it: the list follows the configuration's order */
    e->state = UPSTREAMS_CONFIGURED;
    lock_release(&us->lock);
    e->change = NULL;
    if (change)
        upstream_change_commit(change);
    if (is_new)
        upstream_log_unused(e->up);
}

void upstreams_commit(struct upstreams_change *change)
{
    struct upstreams *us = change->us;

    upstreams_commit_removals(change);
    for (unsigned i = 0; i < change->n; i++)
        upstreams_commit_one(change, change->entries[i]);
    upstreams_free_change(change);
    if (loop_is_current(us->control) && us->sweep.state == TIMER_IDLE)
        loop_schedule(us->control, &us->sweep, UPSTREAMS_SWEEP_NS);
}

void upstreams_cancel(struct upstreams_change *change)
{
    list_for_each (node, &change->us->entries) {
        struct upstreams_entry *e = LIST_ENTRY(node, struct upstreams_entry, link);

        if (e->state != UPSTREAMS_CONFIGURED)
            continue;
        upstream_change_cancel(e->change);
        e->change = NULL;
    }
    for (unsigned i = 0; i < change->n; i++)
        if (change->entries[i]->state == UPSTREAMS_NEW)
            upstreams_free_entry(change->entries[i]);
    upstreams_free_change(change);
}

int upstreams_create(struct upstreams **out, struct loop *control, const struct upstream_env *env)
{
    struct upstreams *us = calloc(1, sizeof(*us));

    if (!us)
        return -ENOMEM;
    us->control = control;
    us->env = *env;
    lock_init(&us->lock);
    list_init(&us->entries);
    timer_init(&us->sweep, &upstreams_sweep_type);
    *out = us;
    return 0;
}

struct upstream **upstreams_hold_all(struct upstreams *us, bool removed, unsigned *n)
{
    struct upstream **list;
    unsigned size = 0;

    *n = 0;
    lock_take(&us->lock);
    list_for_each (node, &us->entries)
        size++;
    list = calloc((size_t)size + 1, sizeof(struct upstream *));
    list_for_each (node, &us->entries) {
        const struct upstreams_entry *e = LIST_ENTRY(node, struct upstreams_entry, link);

        if (list && (removed || e->state == UPSTREAMS_CONFIGURED))
            list[(*n)++] = upstream_hold(e->up);
    }
    lock_release(&us->lock);
    return list;
}

void upstreams_each(struct upstreams *us, void (*visit)(struct upstream *up, void *cookie),
                    void *cookie)
{
    unsigned n;
    struct upstream **list = upstreams_hold_all(us, true, &n);

    for (unsigned i = 0; i < n; i++) {
        visit(list[i], cookie);
        upstream_release(list[i]);
    }
    free(list);
}

void upstreams_destroy(struct upstreams *us)
{
    if (!us)
        return;
    list_for_each_safe (node, &us->entries)
        upstreams_free_entry(LIST_ENTRY(node, struct upstreams_entry, link));
    lock_close(&us->lock);
    free(us);
}
