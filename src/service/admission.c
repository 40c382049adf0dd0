/* service/admission: see admission.h. */
#include "service/admission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "traffic/access.h"

struct admission {
    struct admission_conf conf;
    struct access *access; /* NULL: everybody may come in */
};

int admission_create(struct admission **out, const struct admission_conf *conf)
{
    struct admission *ad = calloc(1, sizeof(*ad));
    int rc;

    if (!ad)
        return -ENOMEM;
    ad->conf = *conf;
    rc = conf->access ? access_create(&ad->access, conf->access) : 0;
    if (rc < 0) {
        free(ad);
        return rc;
    }
    *out = ad;
    return 0;
}

enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason)
{
    MUST(!ticket->of);
    if (!access_allows(ad->access, ad->conf.listener, client)) {
        *reason = SESSION_LIMIT;
        return ad->conf.on_deny;
    }
    ticket->of = ad;
    *reason = SESSION_OPEN;
    return ADMISSION_ADMIT;
}

void admission_leave(struct admission_ticket *ticket)
{
    ticket->of = NULL;
}

void admission_log_stats(const struct admission *ad)
{
    if (ad->access)
        log_notice("stats listen %s denied=%" PRIu64, ad->conf.listener, access_denied(ad->access));
}

void admission_destroy(struct admission *ad)
{
    if (!ad)
        return;
    access_destroy(ad->access);
    free(ad);
}
