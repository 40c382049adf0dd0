/* support/probe: see probe.h. */
#include "support/probe.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"

/* Arguments of a call that is made on the loop, and its result. */
struct call {
    struct probe *p;
    struct probe *to;
    const void *data;
    size_t len;
    int number;
    void (*operation)(struct channel *ch);
    bool (*question)(const struct channel *ch);
    size_t (*count)(const struct probe *p);
    size_t result;
};

struct probe probe;

static unsigned descriptors_before;

static struct probe *probe_of(struct handler *h)
{
    return CONTAINER_OF(h, struct probe, tail);
}

static void note(struct probe *p, char event)
{
    size_t n = strlen(p->events);

    ck_assert_uint_lt(n + 1, sizeof(p->events));
    if ((event != PROBE_READ && event != PROBE_WRITABLE) || n == 0 || p->events[n - 1] != event)
        p->events[n] = event;
}

static void on_active(struct handler *h)
{
    note(probe_of(h), PROBE_ACTIVE);
}

static void on_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct probe *p = probe_of(h);

    ck_assert_uint_gt(len, 0);
    ck_assert_int_eq(buffer_append(&p->read, data, len), 0);
    p->n_reads++;
    note(p, PROBE_READ);
    if (p->on_read)
        p->on_read(p);
}

static void on_writable(struct handler *h)
{
    struct probe *p = probe_of(h);

    note(p, PROBE_WRITABLE);
    if (p->on_writable)
        p->on_writable(p);
}

static void on_ended(struct handler *h, enum handler_end what, int error)
{
    static const char letters[] = {[HANDLER_EOF] = PROBE_EOF,
                                   [HANDLER_REJECTED] = PROBE_REJECTED,
                                   [HANDLER_BROKEN] = PROBE_BROKEN,
                                   [HANDLER_CLOSED] = PROBE_CLOSED};
    struct probe *p = probe_of(h);

    note(p, letters[what]);
    if (what == HANDLER_BROKEN)
        p->broken = error;
    else if (what == HANDLER_CLOSED)
        p->error = error;
    else if (what == HANDLER_REJECTED)
        channel_abort(&p->channel, error);
    else if (p->on_eof)
        p->on_eof(p);
}

static const struct handler_ops probe_ops = {.name = "probe",
                                             .active = on_active,
                                             .read = on_read,
                                             .ended = on_ended,
                                             .writable = on_writable};

struct netloop *probe_net(struct loop *loop)
{
    struct netloop *net;

    ck_assert_int_eq(netloop_create(&net, loop), 0);
    return net;
}

static void call(struct call *c, void (*function)(void *arg))
{
    loop_runner_call(c->p->net->loop, function, c);
}

static void do_init(void *arg)
{
    struct call *c = arg;

    channel_init(&c->p->channel, c->p->net, c->p->fd);
    pipeline_init(&c->p->channel.pipeline, &c->p->channel, &c->p->tail, &probe_ops);
}

void probe_init(struct probe *p, struct netloop *net, void (*connect)(int *ours, int *theirs))
{
    struct call c = {.p = p};

    memset(p, 0, sizeof(*p));
    p->net = net;
    connect(&p->fd, &p->peer);
    buffer_init(&p->read);
    call(&c, do_init);
}

static void do_operation(void *arg)
{
    struct call *c = arg;

    c->operation(&c->p->channel);
}

void probe_do(struct probe *p, void (*operation)(struct channel *ch))
{
    struct call c = {.p = p, .operation = operation};

    call(&c, do_operation);
}

static void do_stop(void *arg)
{
    struct call *c = arg;

    channel_stop_reading(&c->p->channel, (enum channel_stop)c->number);
}

static void read_on(struct channel *ch)
{
    channel_resume_reading(ch, CHANNEL_STOP_RECEIVER);
}

void probe_stop(struct probe *p)
{
    probe_stop_for(p, CHANNEL_STOP_RECEIVER);
}

void probe_stop_for(struct probe *p, enum channel_stop why)
{
    struct call c = {.p = p, .number = (int)why};

    call(&c, do_stop);
}

void probe_read_on(struct probe *p)
{
    probe_do(p, read_on);
}

void probe_start(struct probe *p)
{
    probe_do(p, channel_start);
}

static void do_write(void *arg)
{
    struct call *c = arg;

    c->number = channel_write(&c->p->channel, c->data, c->len);
}

int probe_write(struct probe *p, const void *data, size_t len)
{
    struct call c = {.p = p, .data = data, .len = len};

    call(&c, do_write);
    return c.number;
}

int probe_write_pattern(struct probe *p, size_t from, size_t len)
{
    uint8_t *data = malloc(len);
    int rc;

    ck_assert_ptr_nonnull(data);
    sockets_pattern(data, from, len);
    rc = probe_write(p, data, len);
    free(data);
    return rc;
}

static void do_set_input_pending(void *arg)
{
    struct call *c = arg;

    channel_set_input_pending(&c->p->channel, c->number != 0);
}

void probe_set_input_pending(struct probe *p, bool pending)
{
    struct call c = {.p = p, .number = pending};

    call(&c, do_set_input_pending);
}

static void do_end(void *arg)
{
    struct call *c = arg;

    channel_end(&c->p->channel, (unsigned)c->number);
}

void probe_end(struct probe *p, unsigned how)
{
    struct call c = {.p = p, .number = (int)how};

    call(&c, do_end);
}

static void do_abort(void *arg)
{
    struct call *c = arg;

    channel_abort(&c->p->channel, c->number);
}

void probe_abort(struct probe *p, int error)
{
    struct call c = {.p = p, .number = error};

    call(&c, do_abort);
}

static void do_splice(void *arg)
{
    struct call *c = arg;

    channel_splice_to(&c->p->channel, &c->to->channel, (enum splice_mode)c->number);
}

void probe_splice(struct probe *p, struct probe *to, enum splice_mode mode)
{
    struct call c = {.p = p, .to = to, .number = (int)mode};

    call(&c, do_splice);
}

static void do_events(void *arg)
{
    struct call *c = arg;

    memcpy(c->p->seen, c->p->events, sizeof(c->p->seen));
}

const char *probe_events(struct probe *p)
{
    struct call c = {.p = p};

    call(&c, do_events);
    return p->seen;
}

static void do_count(void *arg)
{
    struct call *c = arg;

    c->result = c->count(c->p);
}

static size_t counted(struct probe *p, size_t (*count)(const struct probe *p))
{
    struct call c = {.p = p, .count = count};

    call(&c, do_count);
    return c.result;
}

static size_t count_read(const struct probe *p)
{
    return buffer_bytes(&p->read);
}

static size_t count_in(const struct probe *p)
{
    return p->channel.bytes_in;
}

static size_t count_pending(const struct probe *p)
{
    return channel_pending_bytes(&p->channel);
}

static size_t count_unsent(const struct probe *p)
{
    return channel_unsent_bytes(&p->channel);
}

size_t probe_read(struct probe *p)
{
    return counted(p, count_read);
}

size_t probe_in(struct probe *p)
{
    return counted(p, count_in);
}

size_t probe_pending(struct probe *p)
{
    return counted(p, count_pending);
}

size_t probe_unsent(struct probe *p)
{
    return counted(p, count_unsent);
}

static void do_question(void *arg)
{
    struct call *c = arg;

    c->result = c->question(&c->p->channel);
}

bool probe_is(struct probe *p, bool (*question)(const struct channel *ch))
{
    struct call c = {.p = p, .question = question};

    call(&c, do_question);
    return c.result != 0;
}

bool probe_saw(struct probe *p, char event)
{
    return strchr(probe_events(p), event) != NULL;
}

void probe_wait(struct probe *p, char event)
{
    UNTIL(probe_saw(p, event));
}

void probe_expect_closed(struct probe *p, int error, const char *events)
{
    probe_wait(p, PROBE_CLOSED);
    ck_assert_str_eq(probe_events(p), events);
    ck_assert_int_eq(p->error, error);
}

void probe_reset_peer(struct probe *p)
{
    sockets_reset(p->peer);
    p->peer = -1;
}

void probe_close(struct probe *p)
{
    probe_abort(p, 0);
    probe_wait(p, PROBE_CLOSED);
    buffer_clear(&p->read);
    if (p->peer >= 0)
        close(p->peer);
    p->peer = -1;
}

/* ---- fixtures ---- */

void probe_connect(void)
{
    struct netloop *net = probe_net(loop_runner_create());

    descriptors_before = process_descriptors();
    probe_init(&probe, net, sockets_tcp);
}

void probe_connect_and_start(void)
{
    probe_connect();
    probe_start(&probe);
}

void probe_start_over(void (*connect)(int *ours, int *theirs))
{
    struct netloop *net = probe.net;

    probe_close(&probe);
    probe_init(&probe, net, connect);
    probe_start(&probe);
}

void probe_disconnect(void)
{
    struct netloop *net = probe.net;
    struct loop *loop = net->loop;

    probe_close(&probe);
    ck_assert_uint_eq(process_descriptors(), descriptors_before);
    loop_runner_destroy(loop);
    netloop_destroy(net);
}
