#include "net/pipeline.h"

#include <errno.h>
#include <string.h>

#include "net/channel_internal.h"

void pipeline_init(struct pipeline *p, struct channel *ch, struct handler *tail,
                   const struct handler_ops *ops)
{
    *tail = (struct handler){.ops = ops, .channel = ch};
    p->head = tail;
    p->tail = tail;
}

void pipeline_set_tail(struct pipeline *p, const struct handler_ops *ops)
{
    p->tail->ops = ops;
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

/* A removed handler keeps its links, so that its current operation can still pass events on. */
static const struct handler_ops pipeline_removed_ops = {.name = "removed"};

void pipeline_remove(struct pipeline *p, struct handler *h)
{
    MUST(h != p->tail);
    if (h->prev)
        h->prev->next = h->next;
    else
        p->head = h->next;
    h->next->prev = h->prev;
    channel_set_handlers(h->channel, p->head != p->tail);
    h->ops = &pipeline_removed_ops;
}

size_t pipeline_held_bytes(const struct pipeline *p)
{
    size_t bytes = 0;

    for (const struct handler *h = p->head; h; h = h->next)
        if (h->ops->held)
            bytes += h->ops->held(h);
    return bytes;
}

size_t pipeline_reclaim(struct pipeline *p)
{
    size_t bytes = 0;

    for (struct handler *h = p->head; h; h = h->next)
        if (h->ops->reclaim)
            bytes += h->ops->reclaim(h);
    return bytes;
}

bool pipeline_may_move(const struct pipeline *p)
{
    for (const struct handler *h = p->head; h; h = h->next)
        if (h->ops->may_move && !h->ops->may_move(h))
            return false;
    return true;
}

void pipeline_leave_loop(struct pipeline *p)
{
    for (struct handler *h = p->head; h; h = h->next)
        if (h->ops->leave_loop)
            h->ops->leave_loop(h);
}

void pipeline_join_loop(struct pipeline *p)
{
    for (struct handler *h = p->head; h; h = h->next)
        if (h->ops->join_loop)
            h->ops->join_loop(h);
}

int pipeline_save(const struct pipeline *p, struct handler_state *out, unsigned max)
{
    unsigned n = 0;

    for (const struct handler *h = p->head; h != p->tail; h = h->next) {
        int rc;

        if (!h->ops->save || n == max)
            return -ENOTSUP;
        out[n] = (struct handler_state){.name = h->ops->name};
        rc = h->ops->save(h, &out[n++]);
        if (rc < 0)
            return rc;
    }
    return (int)n;
}

int pipeline_restore(struct pipeline *p, const struct handler_state *states, unsigned n)
{
    unsigned i = 0;

    for (struct handler *h = p->head; h != p->tail; h = h->next) {
        int rc = -ESTALE;

        if (i < n && h->ops->restore && strcmp(h->ops->name, states[i].name) == 0)
            rc = h->ops->restore(h, &states[i++]);
        if (rc < 0)
            return rc;
    }
    return i == n ? 0 : -ESTALE;
}
