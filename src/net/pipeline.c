/* net/pipeline: see pipeline.h. */
#include "net/pipeline.h"

#include "net/channel.h"

void pipeline_init(struct pipeline *p, struct channel *ch, struct handler *tail,
                   const struct handler_ops *ops)
{
    *tail = (struct handler){.ops = ops, .channel = ch};
    p->head = tail;
    p->tail = tail;
}

void pipeline_add(struct pipeline *p, struct handler *h, const struct handler_ops *ops)
{
    struct handler *tail = p->tail;

    *h = (struct handler){.ops = ops, .channel = tail->channel, .next = tail, .prev = tail->prev};
    if (tail->prev)
        tail->prev->next = h;
    else
        p->head = h;
    tail->prev = h;
    channel_set_handlers(tail->channel, true);
}

void pipeline_remove(struct pipeline *p, struct handler *h)
{
    MUST(h != p->tail);
    if (h->prev)
        h->prev->next = h->next;
    else
        p->head = h->next;
    h->next->prev = h->prev;
    channel_set_handlers(h->channel, p->head != p->tail);
    /* ${h} keeps its own links, so that the operation it is in can still pass its event on. */
}

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

void handler_eof(struct handler *h)
{
    while (!h->ops->eof)
        h = h->next;
    h->ops->eof(h);
}

void handler_writable(struct handler *h)
{
    while (!h->ops->writable)
        h = h->next;
    h->ops->writable(h);
}

void handler_closed(struct handler *h, int error)
{
    while (!h->ops->closed)
        h = h->next;
    h->ops->closed(h, error);
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
