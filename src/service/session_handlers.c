#include "service/session_handlers.h"

#include <stdalign.h>
#include <stdlib.h>

#include "base/cache_line.h"
#include "handlers/pipeline_template.h"
#include "service/mirror.h"
#include "service/session_internal.h"
#include "service/session_preface.h"

struct session_handlers {
    struct session *session;
    struct handler_context context;
    alignas(max_align_t) char states[];
};

static struct session *session_of(struct handler_context *context)
{
    return CONTAINER_OF(context, struct session_handlers, context)->session;
}

static void session_handlers_end(struct handler_context *context, enum session_reason reason)
{
    session_close(session_of(context), reason);
}

static void session_handlers_time_out(struct handler_context *context, enum session_reason reason,
                                      int64_t limit_ns)
{
    session_time_out(session_of(context), reason, limit_ns);
}

static void session_handlers_reset(struct handler_context *context, enum session_reason reason)
{
    session_reset(session_of(context), reason);
}

static void session_handlers_abort(struct handler_context *context, enum session_reason reason)
{
    session_abort(session_of(context), reason);
}

static const struct handler_context_ops session_handlers_ops = {.end = session_handlers_end,
                                                                .time_out =
                                                                    session_handlers_time_out,
                                                                .reset = session_handlers_reset,
                                                                .abort = session_handlers_abort};

void *session_handlers_alloc(const struct service *service, size_t bytes)
{
    size_t lines;

    MUST(bytes % CACHE_LINE_BYTES == 0);
    bytes += session_preface_bytes(service);
    if (service->pipeline)
        bytes += sizeof(struct session_handlers) + pipeline_template_bytes(service->pipeline);
    lines = (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES;
    return aligned_alloc(CACHE_LINE_BYTES, lines * CACHE_LINE_BYTES);
}

/* Add the handlers, in the memory ${memory}, and the mirror. */
static void session_handlers_add_template(struct session *s, struct channel *ch, void *memory)
{
    struct session_handlers *all = memory;

    if (s->pipeline) {
        all->session = s;
        all->context = (struct handler_context){
            .ops = &session_handlers_ops, .listener = s->service->listener, .peer = &s->peer};
        pipeline_template_add(s->pipeline, all->states, ch, &all->context);
    }
    if (s->service->mirror)
        mirror_add(s, ch);
}

void session_handlers_add(struct session *s, struct channel *ch, void *memory)
{
    void *behind = (char *)memory + session_preface_bytes(s->service);

    if (s->preface)
        session_preface_add(s, memory, session_handlers_add_template, behind);
    else
        session_handlers_add_template(s, ch, behind);
}
