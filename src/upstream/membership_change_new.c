/* upstream/membership_change_new: servers that a new configuration brings into use. */
#include "check/checker.h"
#include "upstream/membership_change_internal.h"
#include "upstream/upstream.h"

static bool membership_change_is_new(const struct membership_change *ch,
                                     const struct membership_next *next)
{
    const struct upstream_server *server = next->server;

    if (!next->is_wanted || membership_change_share(ch, next).weight == 0 ||
        !atomic_load(&server->endpoint.addresses) || checker_has(server->target) ||
        upstream_state_expects_up(ch->r->upstream, server->name))
        return false;
    return next->is_new || !server->is_listed || atomic_load(&server->is_disabled) ||
           (endpoint_load(&server->endpoint) & ENDPOINT_DOWN) != 0;
}

int membership_change_each_new(const struct membership_change *ch, membership_visit *visit,
                               void *cookie)
{
    int rc = 0;

    for (unsigned i = 0; i < ch->n && rc == 0; i++) {
        const struct upstream_server_conf *line = &ch->lines.list[ch->list[i].position]->conf;

        if (upstream_starts_down(ch->conf, line) && membership_change_is_new(ch, &ch->list[i]))
            rc = visit(cookie, ch->list[i].server, line);
    }
    return rc;
}
