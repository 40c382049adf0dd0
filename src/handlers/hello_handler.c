#include "handlers/hello_handler.h"

static struct hello_handler *hello_handler_of(struct preface_handler *p)
{
    return CONTAINER_OF(p, struct hello_handler, preface);
}

static int hello_handler_decode(struct preface_handler *p, const uint8_t *data, size_t len)
{
    struct hello_handler *hh = hello_handler_of(p);
    int n = client_hello_scan(&hh->scan, data, len);

    return n < 0 ? n : client_hello_read(&hh->hello, &hh->scan, data);
}

static int hello_handler_conclude(struct preface_handler *p, int error)
{
    (void)p;
    return error;
}

static void hello_handler_done(struct preface_handler *p, int error)
{
    struct hello_handler *hh = hello_handler_of(p);

    hh->done(hh, error);
    client_hello_free(&hh->hello);
}

static const struct preface_handler_ops hello_handler_ops = {
    .decode = hello_handler_decode, .conclude = hello_handler_conclude, .done = hello_handler_done};

void hello_handler_add(struct hello_handler *hh, struct channel *ch,
                       void (*done)(struct hello_handler *hh, int error))
{
    *hh = (struct hello_handler){.done = done};
    preface_handler_add(&hh->preface, ch, &hello_handler_ops);
}
