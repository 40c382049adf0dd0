#include "handover/sessions_place.h"

#include <string.h>

#include "handlers/pipeline_template.h"
#include "limits/admission.h"
#include "listen/listener.h"
#include "listen/listeners.h"
#include "net/sock.h"
#include "server/server.h"
#include "server/server_parts.h"
#include "server/upstreams.h"
#include "service/service.h"
#include "service/session.h"
#include "service/session_state.h"
#include "upstream/upstream.h"

/* Could the listener have begun this session, with these handlers? */
static bool sessions_place_fits(const struct service *service, const struct session_state *st)
{
    bool has_servers = service->ops->route;

    return has_servers == session_state_has_server(st) && !service->tls &&
           pipeline_template_fits(service->pipeline, st->handlers, st->n_handlers);
}

static struct upstream_server *sessions_place_find(const struct upstream *up, const char *name)
{
    const struct server_set *set = membership_now(&up->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (strcmp(set->servers[i]->name, name) == 0)
            return set->servers[i];
    return NULL;
}

/* Is ${fd} connected to an address of ${server}? */
static bool sessions_place_is_at(const struct upstream_server *server, int fd)
{
    struct endpoint_addresses *at = endpoint_hold_addresses(&server->endpoint);
    struct address peer;
    bool found = false;

    if (at && sock_peer(&peer, fd) == 0)
        for (unsigned i = 0; i < at->n && !found; i++)
            found = address_equal(&at->list[i], &peer);
    endpoint_release_addresses(at);
    return found;
}

/* Find upstream and server, and count the session at the server. */
static enum session_stay sessions_place_server(struct session_place *place, const struct server *sv,
                                               const struct session_state *st, int fd)
{
    struct upstream *up =
        upstreams_configured(server_parts(sv).upstreams, st->upstream, strlen(st->upstream));
    struct upstream_server *server = up ? sessions_place_find(up, st->server) : NULL;

    if (!server)
        return SESSION_STAYS_NAME;
    if (up->conf->tls.name || !sessions_place_is_at(server, fd))
        return SESSION_STAYS_CHANGED;
    endpoint_count(&server->endpoint);
    place->upstream = up;
    place->server = server;
    return SESSION_STAYS_NOT;
}

static enum session_stay sessions_place_restore(struct session **out, struct server *sv,
                                                struct session_place *place,
                                                const struct session_state *st, int fd)
{
    enum session_stay why = SESSION_STAYS_NOT;

    if (!sessions_place_fits(place->service, st))
        return SESSION_STAYS_CHANGED;
    if (session_state_has_server(st))
        why = sessions_place_server(place, sv, st, fd);
    if (why != SESSION_STAYS_NOT)
        return why;
    if (session_restore(out, place, st) == 0)
        return SESSION_STAYS_NOT;
    if (place->server)
        upstream_leave(place->upstream, place->server, UPSTREAM_UNKNOWN);
    return SESSION_STAYS_SCARCE;
}

/* ${ls} was counted in at the listener. */
static enum session_stay sessions_place_enter(struct session **out, struct server *sv,
                                              struct session_place *place,
                                              const struct session_state *st, int fd)
{
    enum session_stay why = sessions_place_restore(out, sv, place, st, fd);

    if (why != SESSION_STAYS_NOT)
        return why;
    (*out)->listen = listeners_find_address(server_parts(sv).listeners, &st->listen);
    return SESSION_STAYS_NOT;
}

enum session_stay sessions_place(struct session **out, struct server *sv,
                                 const struct session_state *st, int server_fd)
{
    struct listener *ls = listeners_lookup(server_parts(sv).listeners, st->listener);
    struct admission_ticket ticket;
    struct session_place place = {.upstream = NULL};
    enum session_stay why;

    if (!ls)
        return SESSION_STAYS_NAME;
    place.service = listener_enter(ls, &ticket, &st->client);
    listener_release(ls);
    if (!place.service)
        return SESSION_STAYS_NAME;
    if (server_enter(sv, place.service) < 0) {
        admission_leave(&ticket);
        listener_left(place.service);
        return SESSION_STAYS_SCARCE;
    }
    why = sessions_place_enter(out, sv, &place, st, server_fd);
    if (why == SESSION_STAYS_NOT) {
        (*out)->ticket = ticket;
        return why;
    }
    admission_leave(&ticket);
    server_left(sv, place.service);
    return why;
}

void sessions_place_leave(struct server *sv, struct session *s)
{
    const struct service *service = s->service;

    admission_leave(&s->ticket);
    session_unrestore(s);
    server_left(sv, service);
}
