/* support/host: see host.h. */
#include "support/host.h"

#include <check.h>

#include "base/clock.h"

#include "handlers/pipeline_template.h"
#include "handlers/proxy_protocol.h"
#include "service/session_preface.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/until.h"

struct call {
    struct host *h;
    struct session *s;
    enum session_reason reason;
    size_t pending;
    const struct service *service;
    int64_t at_ns;
};

static void on_ended(struct session_owner *owner, struct session *s)
{
    struct host *h = CONTAINER_OF(owner, struct host, owner);

    list_remove(&s->link);
    atomic_store(&h->reason, (int)s->reason);
    atomic_fetch_add(&h->ended, 1);
}

void host_open(struct host *h, const struct service_ops *ops, struct upstream *upstream)
{
    *h = (struct host){
        .owner.ended = on_ended,
        .service = {.ops = ops, .listener = "test", .upstream = upstream, .conf = &h->conf},
        .conf = {.linger.timeout_ns = HOST_LINGER_NS}};
    list_init(&h->sessions);
    h->loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&h->owner.net, h->loop), 0);
}

void host_pipeline(struct host *h, const char *name, struct executor *executor)
{
    const struct handler_type *type = pipeline_template_find(name);

    ck_assert_msg(type != NULL, "%s", name);
    h->pipeline.list[h->pipeline.n++] = type;
    pipeline_template_release(h->plan);
    ck_assert_int_eq(pipeline_template_create(&h->plan, &h->pipeline, NULL, executor), 0);
    h->service.pipeline = h->plan;
}

static void do_adopt(void *arg)
{
    struct call *c = arg;

    list_append(&c->h->sessions, &c->s->link);
    session_adopt(c->s, &c->h->owner);
}

void host_adopt(struct host *h, int fd)
{
    struct call c = {.h = h};

    ck_assert_int_eq(h->service.ops->create(&c.s, &h->service), 0);
    c.s->client_fd = fd;
    sockets_loopback(&c.s->peer, 12345);
    session_preface_expect(c.s, proxy_protocol_expect(h->service.proxies, &c.s->peer) ==
                                    PROXY_PROTOCOL_READ);
    atomic_fetch_add(&h->adopted, 1);
    loop_runner_call(h->loop, do_adopt, &c);
}

int host_client(struct host *h)
{
    int ours, theirs;

    sockets_tcp(&ours, &theirs);
    host_adopt(h, ours);
    return theirs;
}

static void do_drain(void *arg)
{
    struct call *c = arg;

    list_for_each (node, &c->h->sessions)
        session_drain(LIST_ENTRY(node, struct session, link));
}

void host_drain(struct host *h)
{
    struct call c = {.h = h};

    loop_runner_call(h->loop, do_drain, &c);
}

static void do_abort(void *arg)
{
    struct call *c = arg;

    list_for_each (node, &c->h->sessions)
        session_abort(LIST_ENTRY(node, struct session, link), c->reason);
}

void host_abort(struct host *h, enum session_reason reason)
{
    struct call c = {.h = h, .reason = reason};

    loop_runner_call(h->loop, do_abort, &c);
}

static void do_carry_over(void *arg)
{
    struct call *c = arg;

    list_for_each (node, &c->h->sessions)
        session_carry_over(LIST_ENTRY(node, struct session, link), c->service);
}

void host_carry_over(struct host *h, const struct service *service)
{
    struct call c = {.h = h, .service = service};

    loop_runner_call(h->loop, do_carry_over, &c);
}

static void do_leave(void *arg)
{
    struct call *c = arg;

    list_for_each (node, &c->h->sessions)
        session_leave_by(LIST_ENTRY(node, struct session, link), c->at_ns);
}

void host_leave_in(struct host *h, int64_t ns)
{
    struct call c = {.h = h, .at_ns = clock_now_ns() + ns};

    loop_runner_call(h->loop, do_leave, &c);
}

static void do_pending(void *arg)
{
    struct call *c = arg;

    list_for_each (node, &c->h->sessions) {
        struct session *s = LIST_ENTRY(node, struct session, link);

        for (unsigned i = 0; i < SESSION_LEGS; i++)
            c->pending += s->legs[i] ? channel_pending_bytes(s->legs[i]) : 0;
    }
}

size_t host_pending(struct host *h)
{
    struct call c = {.h = h};

    loop_runner_call(h->loop, do_pending, &c);
    return c.pending;
}

void host_expect_end(struct host *h, enum session_reason reason)
{
    UNTIL(atomic_load(&h->ended) == atomic_load(&h->adopted));
    ck_assert_str_eq(session_reason_text((enum session_reason)atomic_load(&h->reason)),
                     session_reason_text(reason));
}

void host_close(struct host *h)
{
    host_abort(h, SESSION_DRAIN);
    loop_runner_stop(h->loop);
    ck_assert(list_empty(&h->sessions));
    ck_assert_uint_eq(atomic_load(&h->ended), atomic_load(&h->adopted));
    netloop_destroy(h->owner.net);
    loop_destroy(h->loop);
    pipeline_template_release(h->plan);
}
