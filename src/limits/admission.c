#include "limits/admission.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/ref.h"
#include "base/clock.h"
#include "base/log.h"
#include "limits/acl.h"
#include "stats/counters_set.h"
#include "stats/figure.h"

#define ADMISSION_LOG_NS (10 * NS_PER_S)

/* Counter and log limits, shared by all generations of a listener. */
struct admission_history {
    struct ref references;
    _Atomic uint64_t denied;
    struct log_limit denied_limit;
    struct log_limit refused;
    struct log_limit uncounted;
    struct log_limit forgotten;
};

struct admission {
    struct admission_conf conf;
    struct acl *access;           /* NULL: allow all */
    struct client_table *clients; /* NULL: no limits */
    struct admission_history *history;
};

static bool admission_is_limited(const struct client_table_conf *conf)
{
    return conf->each.max_connections > 0 || conf->each.rate.tokens > 0;
}

static int admission_create_history(struct admission *ad, const struct admission *before)
{
    if (before) {
        ad->history = before->history;
        ref_hold(&ad->history->references);
        return 0;
    }
    ad->history = calloc(1, sizeof(*ad->history));
    if (!ad->history)
        return -ENOMEM;
    ref_init(&ad->history->references);
    return 0;
}

static int admission_create_clients(struct admission *ad, const struct admission *before)
{
    const struct client_table_conf *conf = &ad->conf.clients;

    if (!admission_is_limited(conf))
        return 0;
    if (!before || !before->clients || !client_table_fits(before->clients, conf))
        return client_table_create(&ad->clients, conf);
    ad->clients = client_table_hold(before->clients);
    return 0;
}

int admission_create(struct admission **out, const struct admission_conf *conf)
{
    struct admission *ad = calloc(1, sizeof(*ad));
    int rc;

    if (!ad)
        return -ENOMEM;
    ad->conf = *conf;
    rc = admission_create_history(ad, conf->before);
    if (rc == 0 && conf->access)
        rc = acl_create(&ad->access, conf->access);
    if (rc == 0)
        rc = admission_create_clients(ad, conf->before);
    if (rc < 0) {
        admission_destroy(ad);
        return rc;
    }
    *out = ad;
    return 0;
}

void admission_begin(struct admission *ad, int64_t now_ns)
{
    const struct admission *before = ad->conf.before;

    ad->conf.before = NULL;
    if (!before || !before->clients || !ad->clients)
        return;
    if (before->clients == ad->clients)
        client_table_set(ad->clients, &ad->conf.clients.each, now_ns);
    else
        client_table_continue(ad->clients, before->clients);
}

void admission_carry_over(struct admission *ad, struct admission_ticket *ticket,
                          const struct address *client)
{
    if (ticket->of == ad->clients)
        return;
    admission_leave(ticket);
    if (ad->clients)
        *ticket = (struct admission_ticket){
            .of = ad->clients, .client = client_table_count(ad->clients, client, clock_now_ns())};
}

static void admission_log_refused(struct admission *ad, const struct address *client,
                                  enum client_table_answer answer)
{
    char text[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&ad->history->refused, ADMISSION_LOG_NS, &suppressed))
        log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING, "listen %s: client %s: refused: %s%s",
                        ad->conf.listener, address_format(text, sizeof(text), client),
                        answer == CLIENT_TABLE_TOO_MANY ? "max_connections_per_client reached"
                                                        : "connection_rate_per_client exceeded",
                        LOG_SUPPRESSED(suppressed));
}

static void admission_log_uncounted(struct admission *ad)
{
    unsigned suppressed;

    if (log_allowed(&ad->history->uncounted, ADMISSION_LOG_NS, &suppressed))
        log_event_again(
            LOG_LISTENER, LOG_LEVEL_WARNING,
            "listen %s: the client table is full (client_table_size): new clients are not counted, "
            "and no limit per client applies to them%s",
            ad->conf.listener, LOG_SUPPRESSED(suppressed));
}

static void admission_log_forgotten(struct admission *ad)
{
    unsigned suppressed;

    if (log_allowed(&ad->history->forgotten, ADMISSION_LOG_NS, &suppressed))
        log_warning(
            "listen %s: client_table_size is too small: a client was forgotten too early: it can "
            "exceed connection_rate_per_client%s",
            ad->conf.listener, LOG_SUPPRESSED(suppressed));
}

static bool admission_count(struct admission *ad, struct client **out, const struct address *client)
{
    bool forgot;
    enum client_table_answer answer =
        client_table_enter(ad->clients, client, clock_now_ns(), out, &forgot);

    if (forgot)
        admission_log_forgotten(ad);
    if (answer != CLIENT_TABLE_IN)
        admission_log_refused(ad, client, answer);
    else if (!*out && !address_is_unix(client))
        admission_log_uncounted(ad);
    return answer == CLIENT_TABLE_IN;
}

enum admission_verdict admission_deny(struct admission *ad)
{
    atomic_fetch_add_explicit(&ad->history->denied, 1, memory_order_relaxed);
    return ad->conf.on_deny;
}

enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason)
{
    MUST(!ticket->of);
    *reason = SESSION_LIMIT;
    if (!acl_allows(ad->access, ad->conf.listener, client))
        return admission_deny(ad);
    if (ad->clients && !admission_count(ad, &ticket->client, client))
        return ad->conf.over == QUOTA_OVER_CLOSE ? ADMISSION_CLOSE : ADMISSION_RESET;
    ticket->of = ad->clients;
    *reason = SESSION_OPEN;
    return ADMISSION_ADMIT;
}

void admission_leave(struct admission_ticket *ticket)
{
    if (ticket->of)
        client_table_leave(ticket->of, ticket->client);
    *ticket = (struct admission_ticket){0};
}

static const struct figure admission_rules_rows[] = {
    FIGURE_LIVE(struct admission_history, COUNTER, NUMBER, denied, "denied",
                "Clients that deny, allow, access_rules or a route turned away."),
};

static const struct figure_table admission_rules_table = {
    FIGURE_LIVE_TABLE(0, admission_rules_rows)};

void admission_add_counters(const struct admission *ad, struct counters_set *set)
{
    counters_set_add_table(set, &admission_rules_table, ad->history);
    if (ad->clients)
        client_table_add_counters(ad->clients, set);
}

static const struct figure admission_clients_rows[] = {
    FIGURE_ROW(struct client_table_view, clients, "clients_known", FIGURE_GAUGE, FIGURE_NUMBER, 0,
               "Client addresses in the table."),
    FIGURE_ROW(struct client_table_view, refused[CLIENT_TABLE_TOO_MANY],
               "over_max_connections_per_client", FIGURE_COUNTER, FIGURE_NUMBER, 0,
               "Clients above max_connections_per_client."),
    FIGURE_ROW(struct client_table_view, refused[CLIENT_TABLE_TOO_FAST],
               "over_connection_rate_per_client", FIGURE_COUNTER, FIGURE_NUMBER, 0,
               "Clients above connection_rate_per_client."),
    FIGURE_OF(struct client_table_view, COUNTER, NUMBER, uncounted,
              "Connections without a limit of their own, as the table was full."),
    FIGURE_OF(struct client_table_view, COUNTER, NUMBER, forgotten,
              "Clients removed from the full table before their rate allowed a connection."),
};

static const struct figure_table admission_clients_table = {
    FIGURE_TABLE(struct client_table_view, admission_clients_rows)};

void admission_figures(const struct admission *ad, const struct figure_object *object,
                       struct figure_visitor *v)
{
    struct client_table_view clients;

    if (ad->access || atomic_load_explicit(&ad->history->denied, memory_order_relaxed) > 0)
        figure_show_live(v, &admission_rules_table, object, NULL, ad->history);
    if (!ad->clients)
        return;
    client_table_read(ad->clients, &clients);
    figure_show(v, &admission_clients_table, object, &clients);
}

void admission_destroy(struct admission *ad)
{
    if (!ad)
        return;
    acl_destroy(ad->access);
    client_table_release(ad->clients);
    if (ad->history && ref_release(&ad->history->references))
        free(ad->history);
    free(ad);
}
