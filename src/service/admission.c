/* service/admission: see admission.h. */
#include "service/admission.h"

#include <errno.h>
#include <stdlib.h>

struct admission {
    struct admission_conf conf;
};

int admission_create(struct admission **out, const struct admission_conf *conf)
{
    struct admission *ad = calloc(1, sizeof(*ad));

    if (!ad)
        return -ENOMEM;
    ad->conf = *conf;
    *out = ad;
    return 0;
}

enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason)
{
    (void)client;
    MUST(!ticket->of);
    ticket->of = ad;
    *reason = SESSION_OPEN;
    return ADMISSION_ADMIT;
}

void admission_leave(struct admission_ticket *ticket)
{
    ticket->of = NULL;
}

void admission_destroy(struct admission *ad)
{
    free(ad);
}
