#include "handlers/hello_handler.h"

#include <errno.h>

static struct hello_handler *hello_handler_of(struct preface_handler *p)
{
    return CONTAINER_OF(p, struct hello_handler, preface);
}

static int hello_handler_judge(struct hello_handler *hh, const struct hello_handler_bytes *bytes)
{
    int rc = hh->ops->judge(hh, bytes);

    MUST(rc != -EAGAIN || (hh->scanned != 0 && !bytes->is_complete));
    return rc;
}

static int hello_handler_decode(struct preface_handler *p, const uint8_t *data, size_t len)
{
    struct hello_handler *hh = hello_handler_of(p);

    if (hh->scanned == -EAGAIN) {
        hh->scanned = client_hello_scan(&hh->scan, data, len);
        if (hh->scanned > 0)
            hh->scanned = client_hello_read(&hh->hello, &hh->scan, data);
    }
    return hello_handler_judge(hh, &(struct hello_handler_bytes){data, len, false});
}

static int hello_handler_conclude(struct preface_handler *p, int error)
{
    const struct hello_handler_bytes bytes = {buffer_front(&p->held), buffer_bytes(&p->held), true};

    return error == -ETIMEDOUT ? error : hello_handler_judge(hello_handler_of(p), &bytes);
}

static void hello_handler_done(struct preface_handler *p, int error)
{
    struct hello_handler *hh = hello_handler_of(p);

    hh->ops->done(hh, error);
    client_hello_free(&hh->hello);
}

static const struct preface_handler_ops hello_handler_ops = {
    .decode = hello_handler_decode, .conclude = hello_handler_conclude, .done = hello_handler_done};

void hello_handler_add(struct hello_handler *hh, struct channel *ch,
                       const struct hello_handler_ops *ops)
{
    *hh = (struct hello_handler){.ops = ops, .scanned = -EAGAIN};
    preface_handler_add(&hh->preface, ch, &hello_handler_ops);
}
