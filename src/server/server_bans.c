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

typedef void server_bans_use(void *cookie, const char *name, struct ban_table *t);

/* Call ${use} with the table of each listener, or of ${listener}. */
static int server_bans_each_table(struct server *sv, const char *listener, server_bans_use *use,
                                  void *cookie)
{
    unsigned n;
    struct listener_generation **list = listeners_hold_all(sv->listeners, &n);

    if (!list)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        struct ban_table *t = admission_bans(list[i]->admission);
        const char *name = listener_name(list[i]->listener);

        if (t && (!listener || strcmp(listener, name) == 0))
            use(cookie, name, t);
        listener_generation_release(list[i]);
    }
    free(list);
    return 0;
}

struct server_bans_walk {
    const struct server_bans_filter *filter;
    const char *listener;
    server_bans_visit *visit;
    void *cookie;
    unsigned n;
};

static void server_bans_visit_one(void *cookie, const struct ban *ban)
{
    const struct server_bans_walk *walk = cookie;

    if (ban_is_of(ban, walk->filter->block))
        walk->visit(walk->cookie, walk->listener, ban);
}

static void server_bans_visit_table(void *cookie, const char *name, struct ban_table *t)
{
    struct server_bans_walk *walk = cookie;

    walk->listener = name;
    ban_table_each(t, clock_now_ns(), server_bans_visit_one, walk);
}

int server_bans_each(struct server *sv, const struct server_bans_filter *filter,
                     server_bans_visit *visit, void *cookie)
{
    struct server_bans_walk walk = {.filter = filter, .visit = visit, .cookie = cookie};

    return server_bans_each_table(sv, filter->listener, server_bans_visit_table, &walk);
}

static void server_bans_lift_table(void *cookie, const char *name, struct ban_table *t)
{
    struct server_bans_walk *walk = cookie;

    (void)name;
    walk->n += ban_table_lift(t, walk->filter->block, clock_now_ns());
}

int server_bans_lift(struct server *sv, const struct server_bans_filter *filter, unsigned *n)
{
    struct server_bans_walk walk = {.filter = filter};
    int rc = server_bans_each_table(sv, filter->listener, server_bans_lift_table, &walk);

    *n = walk.n;
    return rc;
}

struct server_bans_addition {
    const struct ban *list;
    unsigned n;
    struct server_bans_losses *lost;
    bool has_table;
};

static void server_bans_add_table(void *cookie, const char *name, struct ban_table *t)
{
    struct server_bans_addition *a = cookie;

    (void)name;
    a->has_table = true;
    ban_table_add(t, a->list, a->n, clock_now_ns(), &a->lost->table);
}

void server_bans_add(struct server *sv, const char *listener, const struct ban *list, unsigned n,
                     struct server_bans_losses *lost)
{
    struct server_bans_addition a = {.list = list, .n = n, .lost = lost};

    if (server_bans_each_table(sv, listener, server_bans_add_table, &a) < 0 || !a.has_table)
        lost->no_table += n;
}
