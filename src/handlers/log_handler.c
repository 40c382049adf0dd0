#include "handlers/log_handler.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "net/address.h"
#include "net/channel.h"

#define LOG_DUMP_BYTES 256
#define LOG_ROW_BYTES  16

struct log_handler {
    struct handler handler;
    const struct handler_context *context;
};

static void log_handler_event(const struct handler *h, const char *event, const char *detail)
{
    const struct log_handler *log = CONTAINER_OF(h, struct log_handler, handler);
    char peer[ADDRESS_TEXT_BYTES];

    log_debug("listen %s: %s %s%s", log->context->listener,
              address_format(peer, sizeof(peer), log->context->peer), event, detail);
}

static void log_row(const uint8_t *data, size_t at, size_t len)
{
    char hex[LOG_ROW_BYTES * 3 + 1], text[LOG_ROW_BYTES + 1];

    for (size_t i = 0; i < len; i++) {
        snprintf(hex + i * 3, 4, "%02x ", data[at + i]);
        text[i] = (char)(isprint(data[at + i]) ? data[at + i] : '.');
    }
    text[len] = '\0';
    log_debug("  %04zx  %-*s |%s|", at, LOG_ROW_BYTES * 3, hex, text);
}

static void log_bytes(const struct handler *h, const char *event, const uint8_t *data, size_t len)
{
    size_t shown = len < LOG_DUMP_BYTES ? len : LOG_DUMP_BYTES;
    char detail[64];

    if (!log_wanted(LOG_LEVEL_DEBUG))
        return;
    snprintf(detail, sizeof(detail), ": %zu bytes%s", len,
             shown < len ? ", the first of them" : "");
    log_handler_event(h, event, detail);
    for (size_t at = 0; at < shown; at += LOG_ROW_BYTES)
        log_row(data, at, shown - at < LOG_ROW_BYTES ? shown - at : LOG_ROW_BYTES);
}

static void log_active(struct handler *h)
{
    log_handler_event(h, "active", "");
    handler_active(h->next);
}

static void log_read(struct handler *h, const uint8_t *data, size_t len)
{
    log_bytes(h, "read", data, len);
    handler_read(h->next, data, len);
}

static void log_ended(struct handler *h, enum handler_end what, int error)
{
    static const char *const text[] = {[HANDLER_EOF] = "end of file",
                                       [HANDLER_REJECTED] = "failed: ",
                                       [HANDLER_BROKEN] = "takes no more: ",
                                       [HANDLER_CLOSED] = "closed: "};
    const char *why = what == HANDLER_EOF ? "" : error ? strerror(-error) : "no error";

    log_handler_event(h, text[what], why);
    handler_ended(h->next, what, error);
}

static void log_writable(struct handler *h)
{
    log_handler_event(h, "writable", "");
    handler_writable(h->next);
}

static int log_data_out(struct handler *h, const void *data, size_t len)
{
    log_bytes(h, "write", data, len);
    return handler_write(h, data, len);
}

static void log_shutdown_write(struct handler *h)
{
    log_handler_event(h, "shutdown write", "");
    handler_shutdown_write(h);
}

static const struct handler_ops log_handler_ops = {.name = "log",
                                                   .active = log_active,
                                                   .read = log_read,
                                                   .ended = log_ended,
                                                   .writable = log_writable,
                                                   .write = log_data_out,
                                                   .shutdown_write = log_shutdown_write,
                                                   .save = handler_save_nothing,
                                                   .restore = handler_restore_nothing};

static void log_add(void *state, struct channel *ch, struct handler_context *context,
                    const struct handler_step *step)
{
    struct log_handler *log = state;

    (void)step;
    log->context = context;
    pipeline_add(&ch->pipeline, &log->handler, &log_handler_ops);
}

const struct handler_type log_handler_type = {
    .name = "log", .state_bytes = sizeof(struct log_handler), .add = log_add};
