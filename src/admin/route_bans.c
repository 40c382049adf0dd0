#include "admin/route_bans.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "admin/admin_field.h"
#include "admin/admin_request.h"
#include "base/clock.h"
#include "base/must.h"
#include "option/option_kind.h"
#include "limits/ban.h"
#include "net/cidr.h"
#include "server/server_admin.h"
#include "server/server_bans.h"

#define ROUTE_BANS_LIMIT     100
#define ROUTE_BANS_LIMIT_MAX 1000

/* An int64_t in decimal, with NUL. */
#define ROUTE_BANS_CURSOR_BYTES 21

/* ---- which bans ---- */

/* Read `listener`, `limits`, `client` into ${out} and its ${block}; false: an error is answered. */
static bool route_bans_filter(struct admin_request *rq, struct server_bans_filter *out,
                              struct cidr *block)
{
    const char *client = NULL;

    *out = (struct server_bans_filter){.listener = NULL};
    if (!admin_field_text(rq, "listener", &out->listener) ||
        !admin_field_text(rq, "limits", &out->limits) || !admin_field_text(rq, "client", &client))
        return false;
    if (out->listener && !server_admin_has_listener(admin_server(rq), out->listener)) {
        admin_answer_error(rq, 404, "listener '%s' does not exist", out->listener);
        return false;
    }
    if (out->limits && !server_bans_has_limits(admin_server(rq), out->limits)) {
        admin_answer_error(rq, 404, "no listener has limits = %s", out->limits);
        return false;
    }
    if (!client)
        return true;
    if (cidr_parse(block, client) < 0 || block->len == 0) {
        admin_answer_error(rq, 400, "'client' is not an address or a block such as 10.0.0.0/8");
        return false;
    }
    out->block = block;
    return true;
}

/* ---- list ---- */

_Static_assert(OPTION_KIND_NAME_BYTES < SERVER_BANS_OWNER_BYTES, "names of sections");

struct route_bans_row {
    char owner[SERVER_BANS_OWNER_BYTES];
    bool is_shared; /* `owner` is a [limits NAME], else a listener */
    struct ban ban;
};

/*
 * The newest bans: `rows` has place for twice the maximum, and is cut when it is full. The maximum
 * is the limit, and one more, so that bans of one instant are not on two pages.
 */
struct route_bans_list {
    struct route_bans_row *rows;
    unsigned n, max;
    int64_t before_ns; /* only bans that began before */
    uint64_t matched;
};

static int route_bans_compare(const void *a, const void *b)
{
    const struct route_bans_row *first = a, *second = b;

    return (second->ban.since_ns > first->ban.since_ns) -
           (second->ban.since_ns < first->ban.since_ns);
}

static void route_bans_cut(struct route_bans_list *list)
{
    qsort(list->rows, list->n, sizeof(list->rows[0]), route_bans_compare);
    if (list->n > list->max)
        list->n = list->max;
}

/* Cut to the limit. Returns the beginning of the last ban if more follow; 0: no more. */
static int64_t route_bans_finish(struct route_bans_list *list)
{
    int64_t after_ns;

    route_bans_cut(list);
    if (list->n < list->max)
        return 0;
    after_ns = list->rows[--list->n].ban.since_ns;
    while (list->n > 1 && list->rows[list->n - 1].ban.since_ns == after_ns)
        list->n--;
    return list->rows[list->n - 1].ban.since_ns;
}

static void route_bans_take(void *cookie, const struct server_bans_owner *owner,
                            const struct ban *ban)
{
    struct route_bans_list *list = cookie;
    struct route_bans_row *row;

    list->matched++;
    if (ban->since_ns >= list->before_ns)
        return;
    if (list->n == 2 * list->max)
        route_bans_cut(list);
    row = &list->rows[list->n++];
    row->is_shared = owner->limits != NULL;
    strncpy(row->owner, owner->limits ? owner->limits : owner->listener, sizeof(row->owner) - 1);
    row->ban = *ban;
}

static json_t *route_bans_row(const struct route_bans_row *row, int64_t now_ns)
{
    char client[BAN_TEXT_BYTES];
    int64_t left_ns = row->ban.until_ns - now_ns;

    return json_pack("{s:s, s:s?, s:s?, s:s, s:f, s:f, s:I, s:b}", "client",
                     ban_text(&row->ban, client), "listener", row->is_shared ? NULL : row->owner,
                     "limits", row->is_shared ? row->owner : NULL, "offence",
                     ban_offence_word(row->ban.offence), "age_s",
                     (double)(now_ns - row->ban.since_ns) / NS_PER_S, "left_s",
                     (double)(left_ns > 0 ? left_ns : 0) / NS_PER_S, "refused",
                     (json_int_t)row->ban.refused, "dry_run", row->ban.is_dry);
}

static void route_bans_answer(struct admin_request *rq, struct route_bans_list *list)
{
    json_t *rows = json_array();
    int64_t now_ns = clock_now_ns(), next_ns = route_bans_finish(list);
    bool is_complete = rows != NULL;
    char next[ROUTE_BANS_CURSOR_BYTES];

    snprintf(next, sizeof(next), "%" PRId64, next_ns);
    for (unsigned i = 0; i < list->n && is_complete; i++)
        is_complete = json_array_append_new(rows, route_bans_row(&list->rows[i], now_ns)) == 0;
    if (is_complete) {
        admin_answer_json(rq, 200,
                          json_pack("{s:o, s:I, s:s?}", "bans", rows, "matched",
                                    (json_int_t)list->matched, "next", next_ns > 0 ? next : NULL));
        return;
    }
    json_decref(rows);
    admin_answer_error(rq, 503, "out of memory");
}

static void route_bans_list(struct admin_request *rq)
{
    struct route_bans_list list = {.n = 0};
    uint64_t limit = ROUTE_BANS_LIMIT, before_ns = INT64_MAX;
    struct server_bans_filter filter;
    struct cidr block;

    if (!route_bans_filter(rq, &filter, &block) ||
        !admin_field_number(rq, "limit", 1, ROUTE_BANS_LIMIT_MAX, &limit) ||
        !admin_field_number(rq, "after", 1, INT64_MAX, &before_ns))
        return;
    list.max = (unsigned)limit + 1;
    list.before_ns = (int64_t)before_ns;
    list.rows = calloc(2 * list.max, sizeof(list.rows[0]));
    if (!list.rows || server_bans_each(admin_server(rq), &filter, route_bans_take, &list) < 0)
        admin_answer_error(rq, 503, "out of memory");
    else
        route_bans_answer(rq, &list);
    free(list.rows);
}

/* ---- lift ---- */

static void route_bans_lift(struct admin_request *rq)
{
    struct server_bans_filter filter;
    struct cidr block;
    bool all = false;
    unsigned n;

    if (!route_bans_filter(rq, &filter, &block) || !admin_field_flag(rq, "all", &all))
        return;
    if (all == (filter.block != NULL)) {
        admin_answer_error(rq, 400,
                           all ? "'all' allows no 'client'" : "which bans? \"all\": true for all");
        return;
    }
    if (server_bans_lift(admin_server(rq), &filter, &n) < 0) {
        admin_answer_error(rq, 503, "out of memory");
        return;
    }
    admin_answer_note(rq, "%u bans", n);
    admin_answer_json(rq, 200, json_pack("{s:I}", "lifted", (json_int_t)n));
}

static const char *const list_fields[] = {"listener", "limits", "client", "limit", "after", NULL};
static const char *const lift_fields[] = {"listener", "limits", "client", "all", NULL};

static const struct admin_route list[] = {
    {"GET", "/v1/bans", ADMIN_READ, list_fields, route_bans_list},
    {"POST", "/v1/bans/lift", ADMIN_ACTION, lift_fields, route_bans_lift},
};

const struct admin_routes route_bans = {list, ARRAY_LEN(list)};
