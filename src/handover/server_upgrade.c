#include "handover/server_upgrade.h"

#include "listen/listeners.h"
#include "server/server.h"
#include "server/server_parts.h"

int server_upgrade_descriptors(struct server *sv, struct listeners_descriptor **out, unsigned *n)
{
    return listeners_descriptors(server_parts(sv).listeners, out, n);
}

void server_upgrade_close(struct server *sv)
{
    listeners_leave(server_parts(sv).listeners);
}

void server_upgrade_leave(struct server *sv)
{
    server_upgrade_close(sv);
    server_drain(sv); /* all sockets are stopping already */
}

void server_upgrade_keep(struct server *sv)
{
    listeners_keep(server_parts(sv).listeners);
}
