#include "limits/admission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/ref.h"
#include "base/clock.h"
#include "base/log.h"
#include "limits/acl.h"
#include "limits/admission_internal.h"

#define ADMISSION_LOG_NS     (10 * NS_PER_S)
#define ADMISSION_BAN_LOG_NS (10 * NS_PER_MS) /* a line for each ban, but for floods */

static void admission_add(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

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

/* The admission whose tables ${ad} goes on with if they fit; NULL: none. */
static const struct admission *admission_donor(const struct admission *ad)
{
    const struct admission *before = ad->conf.before;

    if (ad->conf.share.name)
        return ad->conf.share.with;
    return before && !before->conf.share.name ? before : NULL;
}

static bool admission_is_dry(const struct admission *ad)
{
    return ad->conf.over == QUOTA_OVER_LOG;
}

static int admission_create_clients(struct admission *ad, const struct admission *donor)
{
    const struct client_table_conf *conf = &ad->conf.clients;

    if (!admission_is_limited(conf))
        return 0;
    if (!donor || !donor->clients || !client_table_fits(donor->clients, conf))
        return client_table_create(&ad->clients, conf);
    ad->clients = client_table_hold(donor->clients);
    return 0;
}

static struct ban_table_conf admission_ban_conf(const struct admission *ad)
{
    struct ban_table_conf conf = {.max_clients = ad->conf.clients.max_clients,
                                  .name = ad->conf.clients.name,
                                  .ban = ad->conf.ban};

    conf.ban.is_dry = admission_is_dry(ad);
    return conf;
}

static int admission_create_bans(struct admission *ad, const struct admission *donor)
{
    const struct ban_table_conf conf = admission_ban_conf(ad);

    if (conf.ban.offences == 0)
        return 0;
    if (!donor || !donor->bans || !ban_table_fits(donor->bans, &conf))
        return ban_table_create(&ad->bans, &conf);
    ad->bans = ban_table_hold(donor->bans);
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
        rc = admission_create_clients(ad, admission_donor(ad));
    if (rc == 0)
        rc = admission_create_bans(ad, admission_donor(ad));
    if (rc < 0) {
        admission_destroy(ad);
        return rc;
    }
    *out = ad;
    return 0;
}

static void admission_log_losses(struct admission *ad, const struct ban_losses *lost)
{
    if (lost->dry > 0)
        log_notice("listen %s: %u bans ended: they are of the dry run", ad->conf.listener,
                   lost->dry);
    if (lost->prefix > 0)
        log_notice("listen %s: %u bans ended: they are of another client_prefix_v4 or "
                   "client_prefix_v6",
                   ad->conf.listener, lost->prefix);
    if (lost->full > 0)
        log_warning("listen %s: client_table_size is too small: %u bans ended, those with the "
                    "least time left",
                    ad->conf.listener, lost->full);
    atomic_fetch_add_explicit(&ad->history->bans_forgotten, lost->full, memory_order_relaxed);
}

/* Listeners that share tables may have had the same table before, too: it is copied once. */
static void admission_copy_bans(struct admission *ad, const struct admission *from, int64_t now_ns)
{
    const struct admission_share *share = &ad->conf.share;
    struct admission *first = share->name && !share->is_first ? share->with : ad;
    struct ban_losses lost = {.ended = 0};

    if (!from || !from->bans || from->bans == ad->bans || from->bans == first->copied)
        return;
    first->copied = from->bans;
    ban_table_copy(ad->bans, from->bans, now_ns, &lost);
    admission_log_losses(ad, &lost);
}

static void admission_begin_bans(struct admission *ad, int64_t now_ns)
{
    const struct ban_table_conf conf = admission_ban_conf(ad);
    struct ban_losses lost = {.dry = ban_table_set(ad->bans, &conf.ban)};

    admission_log_losses(ad, &lost);
    admission_copy_bans(ad, ad->conf.share.with, now_ns);
    admission_copy_bans(ad, ad->conf.before, now_ns);
}

void admission_begin(struct admission *ad, int64_t now_ns)
{
    if (ad->clients)
        client_table_set(ad->clients, &ad->conf.clients.each, now_ns);
    if (ad->bans)
        admission_begin_bans(ad, now_ns);
    ad->conf.before = ad->conf.share.with = NULL;
}

void admission_carry_over(struct admission *ad, struct admission_ticket *ticket,
                          const struct address *client)
{
    if (ticket->of == ad->clients)
        return;
    admission_leave(ticket);
    if (!ad->clients)
        return;
    *ticket = (struct admission_ticket){
        .of = ad->clients, .client = client_table_count(ad->clients, client, clock_now_ns())};
    if (!ticket->client && !address_is_unix(client))
        admission_add(&ad->history->clients_uncounted);
}

static void admission_log_refused(struct admission *ad, const struct address *client,
                                  enum client_table_answer answer)
{
    char text[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&ad->history->refused, ADMISSION_LOG_NS, &suppressed))
        log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING, "listen %s: client %s: %s: %s%s",
                        ad->conf.listener, address_format(text, sizeof(text), client),
                        admission_is_dry(ad) ? "served, as over_limit = log" : "refused",
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

    if (forgot) {
        admission_add(&ad->history->clients_forgotten);
        admission_log_forgotten(ad);
    }
    if (answer != CLIENT_TABLE_IN) {
        admission_add(&ad->history->refused_clients[answer]);
        admission_log_refused(ad, client, answer);
    } else if (!*out && !address_is_unix(client)) {
        admission_add(&ad->history->clients_uncounted);
        admission_log_uncounted(ad);
    }
    return answer == CLIENT_TABLE_IN;
}

/* ---- bans ---- */

const char *admission_shared(const struct admission *ad)
{
    return ad->conf.share.name;
}

struct ban_table *admission_bans(const struct admission *ad)
{
    return ad->bans;
}

static bool admission_is_exempt(const struct admission *ad, const struct address *client)
{
    const struct cidr_list *exempt = ad->conf.exempt, *proxies = ad->conf.proxies;

    return (exempt && cidr_any_has(exempt->list, exempt->n, client)) ||
           (proxies && cidr_any_has(proxies->list, proxies->n, client));
}

static bool admission_has_banned(struct admission *ad, const struct address *client)
{
    if (!ban_table_has_bans(ad->bans) || admission_is_exempt(ad, client) ||
        !ban_table_refuses(ad->bans, client, clock_now_ns()))
        return false;
    admission_add(&ad->history->refused_banned);
    return true;
}

bool admission_refuses(struct admission *ad, const struct address *client)
{
    return ad->bans && !admission_is_dry(ad) && admission_has_banned(ad, client);
}

static void admission_log_ban(struct admission *ad, const struct ban *ban)
{
    int64_t for_s = (ban->until_ns - ban->since_ns) / NS_PER_S;
    char text[BAN_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&ad->history->banned, ADMISSION_BAN_LOG_NS, &suppressed))
        log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING,
                        "listen %s: client %s: banned for %" PRId64 " s%s%s%s: offences: %u, the "
                        "last: %s%s",
                        ad->conf.listener, ban_text(ban, text), for_s,
                        ad->conf.share.name ? " at all listeners with limits = " : "",
                        ad->conf.share.name ? ad->conf.share.name : "",
                        admission_is_dry(ad) ? ", but served, as over_limit = log" : "",
                        ad->conf.ban.offences, ban_offence_word(ban->offence),
                        LOG_SUPPRESSED(suppressed));
}

static void admission_log_table_full(struct admission *ad, const char *what)
{
    unsigned suppressed;

    if (log_allowed(&ad->history->table_full, ADMISSION_LOG_NS, &suppressed))
        log_warning("listen %s: client_table_size is too small: %s%s", ad->conf.listener, what,
                    LOG_SUPPRESSED(suppressed));
}

void admission_offend(struct admission *ad, const struct address *client, enum ban_offence offence)
{
    struct ban_judgement judgement;

    if (!ad->bans || admission_is_exempt(ad, client))
        return;
    ban_table_offend(ad->bans, client, offence, clock_now_ns(), &judgement);
    if (judgement.is_counted)
        admission_add(&ad->history->offences[offence]);
    if (judgement.forgot_offender) {
        admission_add(&ad->history->offenders_forgotten);
        admission_log_table_full(ad, "the offences of a client were forgotten too early");
    }
    if (judgement.forgot_ban) {
        admission_add(&ad->history->bans_forgotten);
        admission_log_table_full(ad, "a ban was ended for a new one");
    }
    if (!judgement.is_banned)
        return;
    admission_add(&ad->history->bans);
    admission_log_ban(ad, &judgement.ban);
}

/* ---- clients ---- */

enum admission_verdict admission_deny(struct admission *ad, const struct address *client)
{
    admission_add(&ad->history->denied);
    admission_offend(ad, client, BAN_OFFENCE_DENIED);
    return ad->conf.on_deny;
}

/* A dry run serves a client that it bans, without counting it: it would not have got here. */
static bool admission_is_within_limits(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client)
{
    if (ad->bans && admission_is_dry(ad) && admission_has_banned(ad, client))
        return true;
    if (!ad->clients || admission_count(ad, &ticket->client, client))
        return true;
    admission_offend(ad, client, BAN_OFFENCE_LIMIT);
    return admission_is_dry(ad);
}

enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason)
{
    MUST(!ticket->of);
    *reason = SESSION_LIMIT;
    if (!acl_allows(ad->access, ad->conf.listener, client))
        return admission_deny(ad, client);
    if (!admission_is_within_limits(ad, ticket, client))
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

void admission_destroy(struct admission *ad)
{
    if (!ad)
        return;
    acl_destroy(ad->access);
    client_table_release(ad->clients);
    ban_table_release(ad->bans);
    if (ad->history && ref_release(&ad->history->references))
        free(ad->history);
    free(ad);
}
