#include "server/server_bans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limits/admission.h"
#include "limits/ban_table.h"
#include "listen/listener_generation.h"
#include "listen/listeners.h"
#include "net/cidr.h"
#include "server/server_internal.h"

/* A table, and one of the listeners that use it. */
struct server_bans_at {
    const char *listener;
    const char *shared; /* [limits NAME] that has the table; NULL: it is the listener's own */
    struct ban_table *table;
};

typedef void server_bans_use(void *cookie, const struct server_bans_at *at);

static struct server_bans_at server_bans_at(const struct listener_generation *gen)
{
    return (struct server_bans_at){.listener = listener_name(gen->listener),
                                   .shared = admission_shared(gen->admission),
                                   .table = admission_bans(gen->admission)};
}

/* Call ${use} for each listener, also without a table. */
static int server_bans_each_listener(struct server *sv, server_bans_use *use, void *cookie)
{
    unsigned n;
    struct listener_generation **list = listeners_hold_all(sv->listeners, &n);

    if (!list)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        const struct server_bans_at at = server_bans_at(list[i]);

        use(cookie, &at);
        listener_generation_release(list[i]);
    }
    free(list);
    return 0;
}

/* Has a listener before ${i} in ${list} the same table, that of ${at}? */
static bool server_bans_is_again(struct listener_generation **list, unsigned i,
                                 const struct server_bans_at *at)
{
    for (unsigned k = 0; at->shared && k < i; k++)
        if (admission_bans(list[k]->admission) == at->table)
            return true;
    return false;
}

static bool server_bans_is_of(const struct server_bans_at *at,
                              const struct server_bans_filter *filter)
{
    return (!filter->listener || strcmp(filter->listener, at->listener) == 0) &&
           (!filter->limits || (at->shared && strcmp(filter->limits, at->shared) == 0));
}

/* Call ${use} with each table of ${filter} once: a listener has only one. */
static int server_bans_each_table(struct server *sv, const struct server_bans_filter *filter,
                                  server_bans_use *use, void *cookie)
{
    unsigned n;
    struct listener_generation **list = listeners_hold_all(sv->listeners, &n);

    if (!list)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        const struct server_bans_at at = server_bans_at(list[i]);

        if (at.table && server_bans_is_of(&at, filter) &&
            (filter->listener || !server_bans_is_again(list, i, &at)))
            use(cookie, &at);
    }
    for (unsigned i = 0; i < n; i++)
        listener_generation_release(list[i]);
    free(list);
    return 0;
}

/* ---- visits ---- */

struct server_bans_walk {
    const struct server_bans_filter *filter;
    struct server_bans_owner owner;
    server_bans_visit *visit;
    void *cookie;
    unsigned n;
};

static void server_bans_visit_one(void *cookie, const struct ban *ban)
{
    const struct server_bans_walk *walk = cookie;

    if (ban_is_of(ban, walk->filter->block))
        walk->visit(walk->cookie, &walk->owner, ban);
}

static void server_bans_visit_table(void *cookie, const struct server_bans_at *at)
{
    struct server_bans_walk *walk = cookie;

    walk->owner = (struct server_bans_owner){.listener = at->shared ? NULL : at->listener,
                                             .limits = at->shared};
    ban_table_each(at->table, clock_now_ns(), server_bans_visit_one, walk);
}

int server_bans_each(struct server *sv, const struct server_bans_filter *filter,
                     server_bans_visit *visit, void *cookie)
{
    struct server_bans_walk walk = {.filter = filter, .visit = visit, .cookie = cookie};

    return server_bans_each_table(sv, filter, server_bans_visit_table, &walk);
}

struct server_bans_shares {
    void (*visit)(void *cookie, const struct server_bans_owner *owner);
    void *cookie;
};

static void server_bans_visit_share(void *cookie, const struct server_bans_at *at)
{
    const struct server_bans_shares *shares = cookie;
    const struct server_bans_owner owner = {.listener = at->listener, .limits = at->shared};

    if (at->shared)
        shares->visit(shares->cookie, &owner);
}

int server_bans_each_share(struct server *sv,
                           void (*visit)(void *cookie, const struct server_bans_owner *owner),
                           void *cookie)
{
    struct server_bans_shares shares = {.visit = visit, .cookie = cookie};

    return server_bans_each_listener(sv, server_bans_visit_share, &shares);
}

struct server_bans_search {
    const char *limits;
    bool found;
};

static void server_bans_search_one(void *cookie, const struct server_bans_at *at)
{
    struct server_bans_search *search = cookie;

    search->found |= at->shared && strcmp(at->shared, search->limits) == 0;
}

bool server_bans_has_limits(struct server *sv, const char *name)
{
    struct server_bans_search search = {.limits = name};

    return server_bans_each_listener(sv, server_bans_search_one, &search) == 0 && search.found;
}

/* ---- changes ---- */

static void server_bans_lift_table(void *cookie, const struct server_bans_at *at)
{
    struct server_bans_walk *walk = cookie;

    walk->n += ban_table_lift(at->table, walk->filter->block, clock_now_ns());
}

int server_bans_lift(struct server *sv, const struct server_bans_filter *filter, unsigned *n)
{
    struct server_bans_walk walk = {.filter = filter};
    int rc = server_bans_each_table(sv, filter, server_bans_lift_table, &walk);

    *n = walk.n;
    return rc;
}

struct server_bans_addition {
    const char *unless; /* this [limits NAME] has the table; NULL: always */
    const struct ban *list;
    unsigned n;
    struct server_bans_losses *lost;
    bool has_table;
};

static void server_bans_add_table(void *cookie, const struct server_bans_at *at)
{
    struct server_bans_addition *a = cookie;

    if (a->unless && at->shared && strcmp(a->unless, at->shared) == 0)
        return;
    a->has_table = true;
    ban_table_add(at->table, a->list, a->n, clock_now_ns(), &a->lost->table);
}

void server_bans_add(struct server *sv, const struct server_bans_owner *owner,
                     const struct ban *list, unsigned n, struct server_bans_losses *lost)
{
    bool is_both = owner->listener && owner->limits;
    struct server_bans_addition a = {
        .unless = is_both ? owner->limits : NULL, .list = list, .n = n, .lost = lost};
    const struct server_bans_filter filter = {.listener = owner->listener,
                                              .limits = is_both ? NULL : owner->limits};

    if (server_bans_each_table(sv, &filter, server_bans_add_table, &a) < 0 || !a.has_table)
        lost->no_table += n;
}
