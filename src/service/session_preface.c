#include "service/session_preface.h"

#include <errno.h>
#include <stdalign.h>

#include "base/clock.h"
#include "handlers/preface_handler.h"
#include "service/session_header.h"
#include "service/session_hello.h"
#include "service/session_internal.h"
#include "service/session_postgres.h"
#include "service/session_tls.h"

/* ---- connect_on = first_byte: a client that connects and closes never reaches a server ---- */

struct session_preface_first {
    alignas(max_align_t) struct preface_handler reader;
    struct session *session;
};

static int session_preface_first_decode(struct preface_handler *p, const uint8_t *data, size_t len)
{
    (void)p;
    (void)data;
    (void)len;
    return 0;
}

static int session_preface_first_conclude(struct preface_handler *p, int error)
{
    (void)p;
    return error;
}

static void session_preface_first_done(struct preface_handler *p, int error)
{
    struct session *s = CONTAINER_OF(p, struct session_preface_first, reader)->session;

    switch (error) {
    case 0: session_preface_done(s); break;
    case -ENODATA: session_close(s, SESSION_CLIENT_FIN); break;
    case -ETIMEDOUT: session_close(s, SESSION_IDLE); break;
    default: session_abort(s, SESSION_ERROR);
    }
}

static const struct preface_handler_ops session_preface_first_ops = {
    .decode = session_preface_first_decode,
    .conclude = session_preface_first_conclude,
    .done = session_preface_first_done,
};

/* Routes and TLS wait for bytes of the client anyway. */
static size_t session_preface_first_bytes(const struct service *service)
{
    bool waits = service->conf->connect_on == SESSION_CONNECT_ON_FIRST_BYTE &&
                 service->ops->cancel && !service->routes && !service->tls;

    return waits ? sizeof(struct session_preface_first) : 0;
}

static void session_preface_first_begin(struct session *s, struct channel *ch, void *memory)
{
    struct session_preface_first *o = memory;

    o->session = s;
    preface_handler_add(&o->reader, ch, &session_preface_first_ops);
}

static size_t session_preface_first_rest_bytes(const void *memory)
{
    return preface_handler_rest_bytes(&((const struct session_preface_first *)memory)->reader);
}

static void session_preface_first_release(void *memory)
{
    preface_handler_release(&((struct session_preface_first *)memory)->reader);
}

/* The shorter of the limits for a silent client; idle_timeout holds besides. */
static int64_t session_preface_first_timeout_ns(const struct session *s, const void *memory)
{
    const struct session_conf *conf = s->service->conf;
    int64_t first_ns = conf->first_byte_timeout_ns, idle_ns = conf->client_idle_timeout_ns;

    (void)memory;
    if (first_ns == 0 || idle_ns == 0)
        return first_ns + idle_ns;
    return first_ns < idle_ns ? first_ns : idle_ns;
}

static void session_preface_first_give_up(void *memory)
{
    preface_handler_give_up(&((struct session_preface_first *)memory)->reader);
}

static const struct session_preface_stage session_preface_first_stage = {
    .bytes = session_preface_first_bytes,
    .begin = session_preface_first_begin,
    .rest_bytes = session_preface_first_rest_bytes,
    .release = session_preface_first_release,
    .timeout_ns = session_preface_first_timeout_ns,
    .give_up = session_preface_first_give_up,
};

/* ---- all stages ---- */

static const struct session_preface_stage *const session_preface_stages[] = {
    [SESSION_PREFACE_HEADER] = &session_header_stage,
    [SESSION_PREFACE_POSTGRES] = &session_postgres_stage,
    [SESSION_PREFACE_FIRST] = &session_preface_first_stage,
    [SESSION_PREFACE_HELLO] = &session_hello_stage,
    [SESSION_PREFACE_TLS] = &session_tls_stage,
};

/* How often a timeout that has expired looks at a busy stage. */
#define SESSION_PREFACE_BUSY_NS (20 * NS_PER_MS)

#define SESSION_PREFACE_STAGES (sizeof(session_preface_stages) / sizeof(session_preface_stages[0]))

struct session_preface {
    struct session *session;
    void *memory_of[SESSION_PREFACE_STAGES];
    session_preface_add_handlers *add_handlers;
    void *handlers_memory;
    unsigned stage; /* index of the current stage; after the preface, of its last stage */
    int64_t began_at_ns;
    alignas(max_align_t) char memory[];
};

void session_preface_expect(struct session *s, bool header)
{
    for (unsigned i = 0; i < SESSION_PREFACE_STAGES; i++)
        if (session_preface_stages[i]->bytes(s->service) > 0)
            s->preface |= (uint8_t)(1 << i);
    if (!header)
        s->preface &= (uint8_t) ~(1 << SESSION_PREFACE_HEADER);
}

size_t session_preface_bytes(const struct service *service)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < SESSION_PREFACE_STAGES; i++)
        bytes += session_preface_stages[i]->bytes(service);
    return bytes > 0 ? sizeof(struct session_preface) + bytes : 0;
}

/* First unfinished stage of ${s} from stage ${i} on; SESSION_PREFACE_STAGES: none. */
static unsigned session_preface_next(const struct session *s, unsigned i)
{
    while (i < SESSION_PREFACE_STAGES && !(s->preface & 1 << i))
        i++;
    return i;
}

static void session_preface_begin(struct session_preface *o, unsigned stage)
{
    struct session *s = o->session;

    o->stage = stage;
    o->began_at_ns = loop_now_ns(s->owner->net->loop);
    session_preface_stages[stage]->begin(s, s->legs[0], o->memory_of[stage]);
}

void session_preface_add(struct session *s, void *memory,
                         session_preface_add_handlers *add_handlers, void *handlers_memory)
{
    struct session_preface *o = memory;
    char *at = o->memory;

    *o = (struct session_preface){
        .session = s, .add_handlers = add_handlers, .handlers_memory = handlers_memory};
    for (unsigned i = session_preface_next(s, 0); i < SESSION_PREFACE_STAGES;
         i = session_preface_next(s, i + 1)) {
        o->memory_of[i] = at;
        at += session_preface_stages[i]->bytes(s->service);
    }
    s->preface_read = o;
    session_preface_carry_over(s); /* a reload may remove the settings of a later stage */
    session_preface_begin(o, session_preface_next(s, 0));
}

/* Begin byte counts and timeouts here, because the preface does not count. */
static void session_preface_end(struct session_preface *o)
{
    struct session *s = o->session;

    s->legs[0]->bytes_in = session_preface_stages[o->stage]->rest_bytes(o->memory_of[o->stage]);
    s->legs[0]->bytes_out = 0;
    s->opened_at_ns = loop_now_ns(s->owner->net->loop);
    o->add_handlers(s, s->legs[0], o->handlers_memory);
    session_start(s);
    session_timer_arm(s);
}

void session_preface_done(struct session *s)
{
    struct session_preface *o = s->preface_read;
    unsigned done = o->stage, next;

    s->preface &= (uint8_t) ~(1 << done);
    next = session_preface_next(s, done);
    if (next == SESSION_PREFACE_STAGES) {
        session_preface_end(o);
        return;
    }
    session_preface_begin(o, next);
    session_timer_arm(s);
    session_preface_stages[done]->release(o->memory_of[done]);
    session_preface_settle(s);
}

void session_preface_settle(struct session *s)
{
    const struct session_preface *o = s->preface_read;

    if (s->phase == SESSION_PHASE_PREFACE && session_preface_stages[o->stage]->settle)
        session_preface_stages[o->stage]->settle(o->memory_of[o->stage]);
}

void session_preface_read(struct session *s)
{
    const struct session_preface *o = s->preface_read;

    if (o)
        session_preface_stages[o->stage]->release(o->memory_of[o->stage]);
    else
        channel_start(s->legs[0]);
}

/* A client that waits for us is judged once it has its answer. */
int64_t session_preface_until_ns(const struct session *s)
{
    const struct session_preface *o = s->preface_read;
    const struct session_preface_stage *stage = session_preface_stages[o->stage];
    int64_t timeout_ns = stage->timeout_ns(s, o->memory_of[o->stage]), until_ns;
    struct loop *loop = s->owner->net->loop;

    if (timeout_ns <= 0)
        return CLOCK_NEVER;
    until_ns = loop_due_ns(loop, o->began_at_ns, timeout_ns);
    if (!stage->is_busy || !stage->is_busy(o->memory_of[o->stage]))
        return until_ns;
    return clock_later(until_ns, loop_heard_ns(loop) + SESSION_PREFACE_BUSY_NS);
}

void session_preface_give_up(struct session *s)
{
    const struct session_preface *o = s->preface_read;

    session_preface_stages[o->stage]->give_up(o->memory_of[o->stage]);
}

void session_preface_carry_over(struct session *s)
{
    const struct session_preface *o = s->preface_read;

    for (unsigned i = 0; i < SESSION_PREFACE_STAGES; i++)
        if ((s->preface & 1 << i) && session_preface_stages[i]->carry_over)
            session_preface_stages[i]->carry_over(s, o->memory_of[i]);
}
