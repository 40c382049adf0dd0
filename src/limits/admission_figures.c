/* limits/admission_figures: figures of a listener's access control, and of what listeners share. */
#include <stdatomic.h>

#include "base/clock.h"
#include "limits/admission_internal.h"
#include "stats/counters_set.h"
#include "stats/figure.h"

static const struct figure admission_rules_rows[] = {
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, denied, "denied",
                "Clients that deny, allow, access_rules or a route turned away."),
};

static const struct figure_table admission_rules_table = {
    FIGURE_LIVE_TABLE(0, admission_rules_rows)};

struct admission_bans_view {
    unsigned clients_banned;
};

static const struct figure admission_bans_now_rows[] = {
    FIGURE_OF(struct admission_bans_view, GAUGE, NUMBER, clients_banned, "Bans in force."),
};

static const struct figure_table admission_bans_now_table = {
    FIGURE_TABLE(struct admission_bans_view, admission_bans_now_rows)};

static const struct figure admission_bans_rows[] = {
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, bans, "bans", "Bans begun."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, refused_banned, "refused_banned",
                "Connections of banned clients that were refused."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, offences[BAN_OFFENCE_LIMIT],
                "offences_limit", "Offences: above a limit per client."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, offences[BAN_OFFENCE_DENIED],
                "offences_denied", "Offences: denied by an access rule or a route."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, offences[BAN_OFFENCE_HEADER],
                "offences_proxy_header", "Offences: not a trusted proxy."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, offences[BAN_OFFENCE_HELLO],
                "offences_hello", "Offences: no ClientHello, or a broken one."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, offences[BAN_OFFENCE_TLS],
                "offences_tls", "Offences: a failed TLS handshake."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, offenders_forgotten,
                "offenders_forgotten",
                "Clients removed from the full table before their offences expired."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, bans_forgotten, "bans_forgotten",
                "Bans ended before their time, as the table was full."),
};

static const struct figure_table admission_bans_table = {FIGURE_LIVE_TABLE(0, admission_bans_rows)};

struct admission_clients_view {
    unsigned clients_known;
};

static const struct figure admission_clients_now_rows[] = {
    FIGURE_OF(struct admission_clients_view, GAUGE, NUMBER, clients_known,
              "Client addresses in the table."),
};

static const struct figure_table admission_clients_now_table = {
    FIGURE_TABLE(struct admission_clients_view, admission_clients_now_rows)};

static const struct figure admission_clients_rows[] = {
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, refused_clients[CLIENT_TABLE_TOO_MANY],
                "over_max_connections_per_client", "Clients above max_connections_per_client."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, refused_clients[CLIENT_TABLE_TOO_FAST],
                "over_connection_rate_per_client", "Clients above connection_rate_per_client."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, clients_uncounted, "uncounted",
                "Connections without a limit of their own, as the table was full."),
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, clients_forgotten, "forgotten",
                "Clients removed from the full table before their rate allowed a connection."),
};

static const struct figure_table admission_clients_table = {
    FIGURE_LIVE_TABLE(0, admission_clients_rows)};

void admission_add_counters(const struct admission *ad, struct counters_set *set)
{
    struct admission_history *h = ad->history;

    counters_set_add_table(set, &admission_rules_table, h);
    counters_set_add_table(set, &admission_bans_table, h);
    counters_set_add(set, "clients_too_many", &h->refused_clients[CLIENT_TABLE_TOO_MANY]);
    counters_set_add(set, "clients_too_fast", &h->refused_clients[CLIENT_TABLE_TOO_FAST]);
    counters_set_add(set, "clients_uncounted", &h->clients_uncounted);
    counters_set_add(set, "clients_forgotten", &h->clients_forgotten);
}

static void admission_figures_tables(const struct admission *ad, const struct figure_object *object,
                                     struct figure_visitor *v)
{
    if (ad->clients) {
        const struct admission_clients_view view = {client_table_clients(ad->clients)};

        figure_show(v, &admission_clients_now_table, object, &view);
    }
    if (ad->bans) {
        const struct admission_bans_view view = {ban_table_bans(ad->bans, clock_now_ns())};

        figure_show(v, &admission_bans_now_table, object, &view);
    }
}

void admission_figures_shared(const struct admission *ad, struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_LIMITS, .name = ad->conf.share.name};

    if (object.name && ad->conf.share.is_first)
        admission_figures_tables(ad, &object, v);
}

void admission_figures(const struct admission *ad, const struct figure_object *object,
                       struct figure_visitor *v)
{
    if (ad->access || atomic_load_explicit(&ad->history->denied, memory_order_relaxed) > 0)
        figure_show_live(v, &admission_rules_table, object, NULL, ad->history);
    if (!ad->conf.share.name)
        admission_figures_tables(ad, object, v);
    if (ad->bans)
        figure_show_live(v, &admission_bans_table, object, NULL, ad->history);
    if (ad->clients)
        figure_show_live(v, &admission_clients_table, object, NULL, ad->history);
}
