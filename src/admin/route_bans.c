#include "admin/route_bans.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "admin/admin_field.h"
#include "admin/admin_request.h"
#include "base/clock.h"
#include "base/must.h"
#include "config/option_kind.h"
#include "limits/ban.h"
#include "net/cidr.h"
#include "server/server_admin.h"
#include "server/server_bans.h"

#define ROUTE_BANS_LIMIT     100
#define ROUTE_BANS_LIMIT_MAX 1000

/* ---- which bans ---- */

/* Read `listener` and `client` into ${out} and its ${block}; false: an error was answered. */
static bool route_bans_filter(struct admin_request *rq, struct server_bans_filter *out,
                              struct cidr *block)
{
    const char *client = NULL;

    *out = (struct server_bans_filter){.listener = NULL};
    if (!admin_field_text(rq, "listener", &out->listener) ||
        !admin_field_text(rq, "client", &client))
        return false;
    if (out->listener && !server_admin_has_listener(admin_server(rq), out->listener)) {
        admin_answer_error(rq, 404, "listener '%s' does not exist", out->listener);
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

_Static_assert(OPTION_KIND_NAME_BYTES < SERVER_BANS_OWNER_BYTES, "names of listeners");

struct route_bans_row {
    char listener[SERVER_BANS_OWNER_BYTES];
    struct ban ban;
};

/* The newest bans: `rows` has place for twice the limit, and is cut when it is full. */
struct route_bans_list {
    struct route_bans_row *rows;
    unsigned n, limit;
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
    if (list->n > list->limit)
        list->n = list->limit;
}

static void route_bans_take(void *cookie, const char *listener, const struct ban *ban)
{
    struct route_bans_list *list = cookie;
    struct route_bans_row *row;

    list->matched++;
    if (list->n == 2 * list->limit)
        route_bans_cut(list);
    row = &list->rows[list->n++];
    strncpy(row->listener, listener, sizeof(row->listener) - 1);
    row->ban = *ban;
}

static json_t *route_bans_row(const struct route_bans_row *row, int64_t now_ns)
{
    char client[BAN_TEXT_BYTES];
    int64_t left_ns = row->ban.until_ns - now_ns;

    return json_pack("{s:s, s:s, s:s, s:f, s:f, s:I}", "client", ban_text(&row->ban, client),
                     "listener", row->listener, "offence", ban_offence_word(row->ban.offence),
                     "age_s", (double)(now_ns - row->ban.since_ns) / NS_PER_S, "left_s",
                     (double)(left_ns > 0 ? left_ns : 0) / NS_PER_S, "refused",
                     (json_int_t)row->ban.refused);
}

static void route_bans_answer(struct admin_request *rq, struct route_bans_list *list)
{
    json_t *rows = json_array();
    int64_t now_ns = clock_now_ns();
    bool is_complete = rows != NULL;

    route_bans_cut(list);
    for (unsigned i = 0; i < list->n && is_complete; i++)
        is_complete = json_array_append_new(rows, route_bans_row(&list->rows[i], now_ns)) == 0;
    if (is_complete) {
        admin_answer_json(
            rq, 200, json_pack("{s:o, s:I}", "bans", rows, "matched", (json_int_t)list->matched));
        return;
    }
    json_decref(rows);
    admin_answer_error(rq, 503, "out of memory");
}

static void route_bans_list(struct admin_request *rq)
{
    struct route_bans_list list = {.n = 0};
    uint64_t limit = ROUTE_BANS_LIMIT;
    struct server_bans_filter filter;
    struct cidr block;

    if (!route_bans_filter(rq, &filter, &block) ||
        !admin_field_number(rq, "limit", 1, ROUTE_BANS_LIMIT_MAX, &limit))
        return;
    list.limit = (unsigned)limit;
    list.rows = calloc(2 * limit, sizeof(list.rows[0]));
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

static const char *const list_fields[] = {"listener", "client", "limit", NULL};
static const char *const lift_fields[] = {"listener", "client", "all", NULL};

static const struct admin_route list[] = {
    {"GET", "/v1/bans", ADMIN_READ, list_fields, route_bans_list},
    {"POST", "/v1/bans/lift", ADMIN_ACTION, lift_fields, route_bans_lift},
};

const struct admin_routes route_bans = {list, ARRAY_LEN(list)};
