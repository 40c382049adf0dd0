/* limits/admission: see admission.h. */
#include "limits/admission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "limits/acl.h"

/* Minimum between two lines of a kind. */
#define ADMISSION_LOG_NS (10 * NS_PER_S)

struct admission {
    struct admission_conf conf;
    struct acl *access;           /* NULL: allow all */
    struct client_table *clients; /* NULL: no limits */
    struct log_limit refused;
    struct log_limit uncounted;
    struct log_limit forgotten;
};

static bool admission_is_limited(const struct client_table_conf *conf)
{
    return conf->each.max_connections > 0 || conf->each.rate.tokens > 0;
}

int admission_create(struct admission **out, const struct admission_conf *conf)
{
    struct admission *ad = calloc(1, sizeof(*ad));
    int rc = 0;

    if (!ad)
        return -ENOMEM;
    ad->conf = *conf;
    if (conf->access)
        rc = acl_create(&ad->access, conf->access);
    if (rc == 0 && admission_is_limited(&conf->clients))
        rc = client_table_create(&ad->clients, &conf->clients);
    if (rc < 0) {
        admission_destroy(ad);
        return rc;
    }
    *out = ad;
    return 0;
}

static void admission_log_refused(struct admission *ad, const struct address *client,
                                  enum client_table_answer answer)
{
    char text[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&ad->refused, ADMISSION_LOG_NS, &suppressed))
        log_warning("listen %s: client %s: refused: %s%s", ad->conf.listener,
                    address_format(text, sizeof(text), client),
                    answer == CLIENT_TABLE_TOO_MANY ? "max_connections_per_client reached"
                                                    : "connection_rate_per_client exceeded",
                    LOG_SUPPRESSED(suppressed));
}

static void admission_log_uncounted(struct admission *ad)
{
    unsigned suppressed;

    if (log_allowed(&ad->uncounted, ADMISSION_LOG_NS, &suppressed))
        log_warning(
            "listen %s: all client_table_size known clients are connected; further clients are "
            "not limited%s",
            ad->conf.listener, LOG_SUPPRESSED(suppressed));
}

static void admission_log_forgotten(struct admission *ad)
{
    unsigned suppressed;

    if (log_allowed(&ad->forgotten, ADMISSION_LOG_NS, &suppressed))
        log_warning(
            "listen %s: client_table_size is too small: a client was forgotten too early, and "
            "may exceed connection_rate_per_client%s",
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

enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason)
{
    MUST(!ticket->of);
    *reason = SESSION_LIMIT;
    if (!acl_allows(ad->access, ad->conf.listener, client))
        return ad->conf.on_deny;
    if (ad->clients && !admission_count(ad, &ticket->client, client))
        return ad->conf.over == QUOTA_OVER_CLOSE ? ADMISSION_CLOSE : ADMISSION_RESET;
    ticket->of = ad;
    *reason = SESSION_OPEN;
    return ADMISSION_ADMIT;
}

void admission_leave(struct admission_ticket *ticket)
{
    if (ticket->of)
        client_table_leave(ticket->of->clients, ticket->client);
    *ticket = (struct admission_ticket){0};
}

void admission_log_stats(const struct admission *ad)
{
    struct client_table_view v;

    if (ad->access)
        log_notice("stats listen %s denied=%" PRIu64, ad->conf.listener, acl_denied(ad->access));
    if (!ad->clients)
        return;
    client_table_read(ad->clients, &v);
    log_notice("stats listen %s clients_known=%" PRIu64 " over_max_connections_per_client=%" PRIu64
               " over_connection_rate_per_client=%" PRIu64 " uncounted=%" PRIu64
               " forgotten=%" PRIu64,
               ad->conf.listener, v.clients, v.refused[CLIENT_TABLE_TOO_MANY],
               v.refused[CLIENT_TABLE_TOO_FAST], v.uncounted, v.forgotten);
}

void admission_destroy(struct admission *ad)
{
    if (!ad)
        return;
    acl_destroy(ad->access);
    client_table_destroy(ad->clients);
    free(ad);
}
