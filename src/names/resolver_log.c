/* names/resolver_log: what the log says of lookups. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "names/resolver_internal.h"
#include "upstream/upstream.h"

void resolver_log_known(const struct resolver_name *name, bool moved)
{
    const char *how = !name->known ? "is known"
                      : moved      ? "resolves to other addresses"
                                   : "is known again";
    char text[ADDRESS_TEXT_BYTES], more[32] = "";

    if (name->found->n > 1)
        snprintf(more, sizeof(more), " and %u more", name->found->n - 1);
    log_write(!name->late && !name->known ? LOG_LEVEL_INFO : LOG_LEVEL_NOTICE,
              "upstream %s: server %s (%s): the name %s: %s%s", name->upstream_name, name->id,
              name->shown, how, address_format(text, sizeof(text), &name->found->list[0]), more);
}

/* What becomes of the servers of ${name}, whose lookup failed. */
static const char *resolver_log_outcome(const struct resolver_name *name, int error, char *text,
                                        size_t size)
{
    int64_t hold_ns = name->upstream->conf->resolve_hold_ns;

    if (!name->known)
        return "the server gets no clients";
    if (error != -ENOENT || hold_ns == CLOCK_NEVER)
        return "its addresses stay in use";
    snprintf(text, size, "its addresses stay in use for %g s", (double)hold_ns / NS_PER_S);
    return text;
}

void resolver_log_failure(const struct resolver_name *name, int error)
{
    char text[64];

    log_warning(
        "upstream %s: server %s (%s): cannot look up the name: %s; %s; trying again within %g s",
        name->upstream_name, name->id, name->shown, resolver_error_text(error),
        resolver_log_outcome(name, error, text, sizeof(text)),
        (double)resolver_name_retry_ns(name) / NS_PER_S);
}
