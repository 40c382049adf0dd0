#include "net/handler.h"

#include <errno.h>

#include "net/channel_internal.h"

void handler_active(struct handler *h)
{
    while (!h->ops->active)
        h = h->next;
    h->ops->active(h);
}

void handler_read(struct handler *h, const uint8_t *data, size_t len)
{
    while (!h->ops->read)
        h = h->next;
    h->ops->read(h, data, len);
}

void handler_burst(struct handler *h, bool begins)
{
    while (h && !h->ops->burst)
        h = h->next;
    if (h)
        h->ops->burst(h, begins);
}

void handler_ended(struct handler *h, enum handler_end what, int error)
{
    while (!h->ops->ended)
        h = h->next;
    h->ops->ended(h, what, error);
}

void handler_writable(struct handler *h)
{
    while (!h->ops->writable)
        h = h->next;
    h->ops->writable(h);
}

int handler_write(struct handler *h, const void *data, size_t len)
{
    struct channel *ch = h->channel;

    for (h = h->prev; h; h = h->prev)
        if (h->ops->write)
            return h->ops->write(h, data, len);
    return channel_send(ch, data, len);
}

void handler_shutdown_write(struct handler *h)
{
    struct channel *ch = h->channel;

    for (h = h->prev; h; h = h->prev) {
        if (h->ops->shutdown_write) {
            h->ops->shutdown_write(h);
            return;
        }
    }
    channel_send_eof(ch);
}

int handler_save_nothing(const struct handler *h, struct handler_state *st)
{
    (void)h;
    (void)st;
    return 0;
}

int handler_restore_nothing(struct handler *h, const struct handler_state *st)
{
    (void)h;
    return st->n == 0 ? 0 : -EINVAL;
}
