#include "server/certificates.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ref.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/executor.h"
#include "engine/lock.h"
#include "engine/loop.h"
#include "tls/tls_conf.h"
#include "tls/tls_profile.h"
#include "tls/tls_slot.h"

#define CERTIFICATES_WHY_BYTES 1024

/* Changed files may fail to load for so long: they are replaced one after the other. */
#define CERTIFICATES_PATIENCE_NS (5 * NS_PER_S)
#define CERTIFICATES_RETRY_NS    (500 * NS_PER_MS)

#define CERTIFICATES_WARN_EVERY_NS (24 * 3600 * NS_PER_S)
#define CERTIFICATES_WARN_SECONDS  (14 * 24 * 3600)
#define CERTIFICATES_WARN_LINES    20 /* of a section */

/* A [tls NAME] section; only the executor uses the members after `conf`. */
struct certificates_section {
    struct tls_conf conf;
    int64_t look_at_ns;
    int64_t failing_since_ns; /* begin of the retries; 0: no retries now */
    uint64_t refused;         /* fingerprint of the files whose failure was logged */
    bool is_refused;
};

/* All [tls NAME] sections of one configuration. */
struct certificates_change {
    struct ref references;
    struct certificates *owner;
    unsigned n;
    struct certificates_section list[];
};

struct certificates {
    struct loop *control;
    struct executor *executor;
    struct lock lock;
    struct certificates_change *current; /* replaced under the lock, together with the slots */
    struct timer timer;                  /* idle while the executor looks */
    struct task look, looked;
    bool is_replaced;            /* a commit replaced `current` while the executor looked */
    bool is_looking;             /* both flags: used by the control loop only */
    int64_t next_ns, warn_at_ns; /* used by the executor while `is_looking` */
};

/* ---- sections ---- */

static void certificates_release(struct certificates_change *change)
{
    if (!ref_release(&change->references))
        return;
    for (unsigned i = 0; i < change->n; i++)
        arena_release(change->list[i].conf.memory);
    free(change);
}

static struct certificates_change *certificates_hold_current(struct certificates *c)
{
    struct certificates_change *current;

    lock_take(&c->lock);
    current = c->current;
    ref_hold(&current->references);
    lock_release(&c->lock);
    return current;
}

/* Put ${p} into its slot; or release it and return false, if a reload has replaced ${of}. */
static bool certificates_replace(const struct certificates_change *of, const struct tls_conf *conf,
                                 struct tls_profile *p)
{
    struct certificates *c = of->owner;
    bool is_current;

    lock_take(&c->lock);
    is_current = c->current == of;
    if (is_current)
        tls_slot_replace(conf->slot, p);
    lock_release(&c->lock);
    if (!is_current)
        tls_profile_release(p);
    return is_current;
}

/* ---- executor ---- */

static void certificates_log_warnings(const struct tls_conf *conf, const struct tls_profile *p)
{
    for (const char *line = tls_profile_warnings(p); *line != '\0'; line++) {
        int len = (int)strcspn(line, "\n");

        log_warning("tls %s: %.*s", conf->name, len, line);
        line += len;
    }
}

static void certificates_use(const struct certificates_change *of, const struct tls_conf *conf,
                             struct tls_profile *p, const struct tls_profile *before)
{
    bool is_other = !tls_profile_same(p, before);
    unsigned n = tls_profile_certificates(p);

    if (is_other)
        certificates_log_warnings(conf, p);
    if (certificates_replace(of, conf, p) && is_other)
        log_event(LOG_CERTIFICATE, LOG_LEVEL_NOTICE,
                  "tls %s: files have changed and are used for new connections; certificates: %u",
                  conf->name, n);
}

/*
 * The files cannot be loaded. Some may still be missing: retry for CERTIFICATES_PATIENCE_NS; then
 * log the failure once for each state of the files.
 */
static void certificates_refuse(struct certificates_section *s, uint64_t fingerprint,
                                const char *why, int64_t now_ns)
{
    if (s->failing_since_ns == 0)
        s->failing_since_ns = now_ns;
    if (now_ns - s->failing_since_ns < CERTIFICATES_PATIENCE_NS) {
        s->look_at_ns = now_ns + CERTIFICATES_RETRY_NS;
        return;
    }
    log_event(LOG_CERTIFICATE, LOG_LEVEL_ERROR,
              "tls %s: the changed files cannot be loaded: %s; the certificates in use stay",
              s->conf.name, why);
    s->refused = fingerprint;
    s->is_refused = true;
    s->failing_since_ns = 0;
}

static void certificates_load(const struct certificates_change *of, struct certificates_section *s,
                              const struct tls_profile *before, uint64_t fingerprint)
{
    struct tls_profile_conf conf = s->conf.profile;
    struct tls_profile *p;
    char why[CERTIFICATES_WHY_BYTES];

    conf.before = before;
    if (tls_profile_load(&conf, &p, why, sizeof(why)) < 0) {
        certificates_refuse(s, fingerprint, why, clock_now_ns());
        return;
    }
    s->failing_since_ns = 0;
    s->is_refused = false;
    certificates_use(of, &s->conf, p, before);
}

static void certificates_look_at(const struct certificates_change *of,
                                 struct certificates_section *s, int64_t now_ns)
{
    struct tls_profile *p;
    uint64_t fingerprint;

    if (s->conf.watch_ns == 0 || now_ns < s->look_at_ns)
        return;
    s->look_at_ns = now_ns + s->conf.watch_ns;
    p = tls_slot_current(s->conf.slot);
    if (!tls_profile_has_changed_files(p, &fingerprint))
        s->failing_since_ns = 0;
    else if (!s->is_refused || s->refused != fingerprint)
        certificates_load(of, s, p, fingerprint);
    tls_profile_release(p);
}

static void certificates_warn(const struct tls_conf *conf)
{
    struct tls_profile *p = tls_slot_current(conf->slot);
    unsigned n = tls_profile_certificates(p), i = 0;
    struct tls_profile_certificate c;
    int64_t left = 0;

    for (; i < n; i++) {
        tls_profile_certificate(p, i, &c);
        left = c.expires_at - (int64_t)time(NULL);
        if (left > CERTIFICATES_WARN_SECONDS)
            break;
        if (i >= CERTIFICATES_WARN_LINES)
            continue;
        if (left < 0)
            log_event(LOG_CERTIFICATE, LOG_LEVEL_WARNING, "tls %s: %s: the certificate has expired",
                      conf->name, c.path);
        else
            log_event(LOG_CERTIFICATE, LOG_LEVEL_WARNING,
                      "tls %s: %s: the certificate expires in %.1f days", conf->name, c.path,
                      (double)left / 86400);
    }
    if (i > CERTIFICATES_WARN_LINES)
        log_warning("tls %s: certificates that have expired, or expire within 14 days: %u",
                    conf->name, i);
    tls_profile_release(p);
}

static void certificates_run_look(struct task *t)
{
    struct certificates *c = CONTAINER_OF(t, struct certificates, look);
    struct certificates_change *of = certificates_hold_current(c);
    int64_t now_ns = clock_now_ns();
    bool warn = now_ns >= c->warn_at_ns;

    if (warn)
        c->warn_at_ns = now_ns + CERTIFICATES_WARN_EVERY_NS;
    c->next_ns = c->warn_at_ns;
    for (unsigned i = 0; i < of->n; i++) {
        struct certificates_section *s = &of->list[i];

        certificates_look_at(of, s, now_ns);
        if (warn)
            certificates_warn(&s->conf);
        if (s->conf.watch_ns > 0 && s->look_at_ns < c->next_ns)
            c->next_ns = s->look_at_ns;
    }
    certificates_release(of);
    if (loop_submit(c->control, LOOP_CONTROL, &c->looked) < 0)
        return; /* the server ends */
}

static const struct task_type certificates_look_type = {.name = "look at certificates",
                                                        .run = certificates_run_look};

/* ---- control loop ---- */

static void certificates_schedule(struct certificates *c, int64_t delay_ns)
{
    if (c->current->n > 0 && !c->is_looking)
        loop_schedule(c->control, &c->timer, delay_ns > 0 ? delay_ns : 0);
}

static void certificates_run_timer(struct task *t)
{
    struct certificates *c = TIMER_OWNER(t, struct certificates, timer);

    c->is_looking = executor_submit(c->executor, &c->look) == 0;
    if (!c->is_looking)
        certificates_schedule(c, NS_PER_S); /* the executor is full */
}

static void certificates_run_looked(struct task *t)
{
    struct certificates *c = CONTAINER_OF(t, struct certificates, looked);

    c->is_looking = false;
    certificates_schedule(c, c->is_replaced ? 0 : c->next_ns - clock_now_ns());
    c->is_replaced = false;
}

static const struct task_type certificates_timer_type = {.name = "look at certificates",
                                                         .run = certificates_run_timer};
static const struct task_type certificates_looked_type = {.name = "certificates were looked at",
                                                          .run = certificates_run_looked};

int certificates_prepare(struct certificates *c, const struct tls_conf *list, unsigned n,
                         struct certificates_change **out)
{
    struct certificates_change *change = calloc(1, sizeof(*change) + n * sizeof(change->list[0]));

    if (!change)
        return -ENOMEM;
    ref_init(&change->references);
    change->owner = c;
    change->n = n;
    for (unsigned i = 0; i < n; i++) {
        change->list[i].conf = list[i];
        (void)arena_hold(list[i].memory);
    }
    *out = change;
    return 0;
}

void certificates_commit(struct certificates_change *change)
{
    struct certificates *c = change->owner;
    struct certificates_change *before;

    lock_take(&c->lock);
    before = c->current;
    c->current = change;
    for (unsigned i = 0; i < change->n; i++)
        tls_slot_replace(change->list[i].conf.slot, tls_profile_hold(change->list[i].conf.loaded));
    lock_release(&c->lock);
    certificates_release(before);
    c->is_replaced = c->is_looking;
    loop_cancel(c->control, &c->timer);
    certificates_schedule(c, 0);
}

void certificates_cancel(struct certificates_change *change)
{
    certificates_release(change);
}

/* ---- main ---- */

int certificates_create(struct certificates **out, struct loop *control, struct executor *executor)
{
    struct certificates *c = calloc(1, sizeof(*c));
    int rc;

    if (!c)
        return -ENOMEM;
    c->control = control;
    c->executor = executor;
    timer_init(&c->timer, &certificates_timer_type);
    c->look.type = &certificates_look_type;
    c->looked.type = &certificates_looked_type;
    rc = certificates_prepare(c, NULL, 0, &c->current);
    if (rc < 0) {
        free(c);
        return rc;
    }
    lock_init(&c->lock);
    *out = c;
    return 0;
}

/* Insert ${row} into ${rows}, sorted by time of expiry. Returns the new number of rows. */
static unsigned certificates_insert(struct certificates_row *rows, unsigned n, unsigned max,
                                    const struct certificates_row *row)
{
    unsigned at = n < max ? n : max;

    while (at > 0 && rows[at - 1].expires_at > row->expires_at)
        at--;
    if (at == max)
        return n;
    n = n < max ? n + 1 : max;
    memmove(&rows[at + 1], &rows[at], (n - 1 - at) * sizeof(*rows));
    rows[at] = *row;
    return n;
}

/* A section may name a file twice, as such and by its directory. */
static bool certificates_has_row(const struct certificates_row *rows, unsigned n,
                                 const struct certificates_row *row)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(rows[i].path, row->path) == 0 && strcmp(rows[i].section, row->section) == 0)
            return true;
    return false;
}

unsigned certificates_soonest(struct certificates *c, struct certificates_row *rows, unsigned max)
{
    struct certificates_change *of = certificates_hold_current(c);
    unsigned n = 0;

    for (unsigned i = 0; i < of->n; i++) {
        struct tls_profile *p = tls_slot_current(of->list[i].conf.slot);

        for (unsigned j = 0; j < tls_profile_certificates(p) && j < max; j++) {
            struct tls_profile_certificate from;
            struct certificates_row row;

            tls_profile_certificate(p, j, &from);
            snprintf(row.section, sizeof(row.section), "%s", of->list[i].conf.name);
            snprintf(row.path, sizeof(row.path), "%s", from.path);
            row.expires_at = from.expires_at;
            if (!certificates_has_row(rows, n, &row))
                n = certificates_insert(rows, n, max, &row);
        }
        tls_profile_release(p);
    }
    certificates_release(of);
    return n;
}

void certificates_destroy(struct certificates *c)
{
    if (!c)
        return;
    certificates_release(c->current);
    lock_close(&c->lock);
    free(c);
}
