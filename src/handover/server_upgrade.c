#include "handover/server_upgrade.h"

#include "listen/listeners.h"
#include "server/server_internal.h"

int server_upgrade_descriptors(struct server *sv, struct listeners_descriptor **out, unsigned *n)
{
    return listeners_descriptors(sv->listeners, out, n);
}

void server_upgrade_leave(struct server *sv)
{
    listeners_leave(sv->listeners);
    server_drain(sv); /* all sockets are stopping already */
}

void server_upgrade_keep(struct server *sv)
{
    listeners_keep(sv->listeners);
}
