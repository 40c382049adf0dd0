/* service/send_proxy: see proxy_greeting.h. */
#include "service/send_proxy.h"

#include "net/channel.h"
#include "net/proxy_header.h"
#include "net/sock.h"
#include "service/session.h"
#include "service/session_preface.h"

/* Where the client connected to; NULL if that is not known, or of no use to tell. */
static const struct address *send_proxy_destination(const struct session *s, struct address *room)
{
    const struct address *told = session_preface_destination(s);

    if (told)
        return told;
    if (address_is_unix(&s->peer) || sock_local(room, s->legs[0]->io.fd) < 0)
        return NULL;
    return room;
}

void send_proxy_send(struct session *s, struct channel *server)
{
    const struct proxy_header_conf *conf = &s->service->upstream->conf->greeting;
    uint8_t header[PROXY_HEADER_ENCODED_BYTES];
    char id[SESSION_ID_TEXT_BYTES];
    const struct address *destination;
    struct address room;
    size_t len;
    int rc;

    if (conf->version == PROXY_HEADER_NONE)
        return;
    destination = send_proxy_destination(s, &room);
    if (conf->unique_id)
        session_id_format(id, session_id(s));
    len = proxy_header_encode(header, conf, destination ? &s->peer : NULL, destination, id);
    rc = channel_send(server, header, len);
    (void)rc; /* what fails here is told by an event: broken or closed */
}
