#include "handlers/preface_handler.h"

#include <errno.h>
#include <string.h>

#include "net/channel.h"
#include "net/memory_account.h"

static struct preface_handler *preface_handler_of(struct handler *h)
{
    return CONTAINER_OF(h, struct preface_handler, handler);
}

static struct memory_account *preface_handler_buffered(const struct preface_handler *p)
{
    return channel_net(p->handler.channel)->buffered;
}

static int preface_handler_hold(struct preface_handler *p, const uint8_t *data, size_t len)
{
    return memory_account_append(preface_handler_buffered(p), &p->held, data, len);
}

static size_t preface_handler_held(const struct handler *h)
{
    return CONTAINER_OF(h, const struct preface_handler, handler)->held.cap;
}

/* Keep a copy of the bytes after the preface, unless done() has passed them on. */
static void preface_handler_hold_rest(struct preface_handler *p)
{
    struct channel *ch = p->handler.channel;

    if (p->rest_bytes > 0 && p->rest_bytes <= sizeof(p->rest_copy)) {
        p->rest = memcpy(p->rest_copy, p->rest, p->rest_bytes);
        return;
    }
    if (p->rest_bytes > 0 && !channel_ended(ch) &&
        preface_handler_hold(p, p->rest, p->rest_bytes) < 0)
        channel_abort(ch, -ENOMEM);
    p->rest = NULL;
    p->rest_bytes = 0;
}

static void preface_handler_decide(struct preface_handler *p, int error, const uint8_t *rest,
                                   size_t rest_bytes)
{
    p->is_decided = true;
    p->rest = rest;
    p->rest_bytes = rest_bytes;
    channel_stop_reading(p->handler.channel, CHANNEL_STOP_HANDLER);
    p->ops->done(p, error);
    preface_handler_hold_rest(p);
}

/* A preface nearly always fits one read: decode in place. */
static void preface_handler_read_first(struct preface_handler *p, const uint8_t *data, size_t len)
{
    int n = p->ops->decode(p, data, len);

    if (n != -EAGAIN) {
        size_t taken = n > 0 ? (size_t)n : 0;

        preface_handler_decide(p, n < 0 ? n : 0, data + taken, len - taken);
    } else if (preface_handler_hold(p, data, len) < 0) {
        preface_handler_decide(p, -ENOMEM, NULL, 0);
    }
}

static void preface_handler_decode_held(struct preface_handler *p)
{
    int n = p->ops->decode(p, buffer_front(&p->held), buffer_bytes(&p->held));

    if (n == -EAGAIN)
        return;
    if (n > 0)
        memory_account_consume(preface_handler_buffered(p), &p->held, (size_t)n);
    preface_handler_decide(p, n < 0 ? n : 0, NULL, 0);
}

static void preface_handler_read_more(struct preface_handler *p, const uint8_t *data, size_t len)
{
    if (preface_handler_hold(p, data, len) < 0) {
        preface_handler_decide(p, -ENOMEM, NULL, 0);
        return;
    }
    preface_handler_decode_held(p);
}

static void preface_handler_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct preface_handler *p = preface_handler_of(h);

    MUST(!p->is_decided); /* reading is paused then */
    if (buffer_bytes(&p->held) == 0)
        preface_handler_read_first(p, data, len);
    else
        preface_handler_read_more(p, data, len);
}

void preface_handler_settle(struct preface_handler *p)
{
    if (!p->is_decided && !channel_discards(p->handler.channel))
        preface_handler_decode_held(p);
}

static void preface_handler_conclude(struct preface_handler *p, int error)
{
    preface_handler_decide(p, p->ops->conclude(p, error), NULL, 0);
}

static void preface_handler_eof(struct preface_handler *p)
{
    MUST(!p->is_decided);
    p->has_ended = true;
    preface_handler_conclude(p, buffer_bytes(&p->held) > 0 ? -EPROTO : -ENODATA);
}

static void preface_handler_active(struct handler *h)
{
    (void)h;
}

static void preface_handler_ended(struct handler *h, enum handler_end what, int error)
{
    struct preface_handler *p = preface_handler_of(h);

    if (what == HANDLER_EOF) {
        preface_handler_eof(p);
        return;
    }
    if (what == HANDLER_CLOSED)
        memory_account_clear(preface_handler_buffered(p), &p->held);
    handler_ended(h->next, what, error);
}

static const struct handler_ops preface_handler_ops = {.name = "preface",
                                                       .active = preface_handler_active,
                                                       .read = preface_handler_read,
                                                       .ended = preface_handler_ended,
                                                       .held = preface_handler_held};

void preface_handler_add(struct preface_handler *p, struct channel *ch,
                         const struct preface_handler_ops *ops)
{
    *p = (struct preface_handler){.ops = ops};
    buffer_init(&p->held);
    pipeline_add(&ch->pipeline, &p->handler, &preface_handler_ops);
}

void preface_handler_give_up(struct preface_handler *p)
{
    if (!p->is_decided && !channel_discards(p->handler.channel))
        preface_handler_conclude(p, -ETIMEDOUT);
}

size_t preface_handler_rest_bytes(const struct preface_handler *p)
{
    return buffer_bytes(&p->held) + p->rest_bytes;
}

static void preface_handler_pass(struct preface_handler *p, const uint8_t *data, size_t len)
{
    if (!channel_discards(p->handler.channel))
        handler_read(p->handler.next, data, len);
}

/* Resume reading before passing bytes on: their receiver may pause it again. */
void preface_handler_release(struct preface_handler *p)
{
    struct handler *h = &p->handler;
    struct channel *ch = h->channel;

    MUST(p->is_decided && h->ops == &preface_handler_ops);
    pipeline_remove(&ch->pipeline, h);
    channel_resume_reading(ch, CHANNEL_STOP_HANDLER);
    handler_active(h->next);
    if (buffer_bytes(&p->held) > 0)
        preface_handler_pass(p, buffer_front(&p->held), buffer_bytes(&p->held));
    memory_account_clear(preface_handler_buffered(p), &p->held);
    if (p->rest_bytes > 0)
        preface_handler_pass(p, p->rest, p->rest_bytes);
    p->rest_bytes = 0;
    if (p->has_ended && !channel_discards(ch))
        handler_ended(h->next, HANDLER_EOF, 0);
}
