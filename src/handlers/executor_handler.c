/*
 * note: mailbox. A session may end before its messages on the executor, so loop and executor share
 * a reference-counted mailbox. The handler, each submitted message and the pending notice hold a
 * reference. Only the loop reads mailbox->handler.
 *
 * note: notice. Executor threads push finished messages to a list, newest first, by
 * compare-and-swap. A push onto an empty list submits the notice, a task, to the loop. The notice
 * takes the whole list by one exchange. If the task queue is full, the control queue (unbounded)
 * takes it.
 */
#include "handlers/executor_handler.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ref.h"
#include "base/clock.h"
#include "engine/loop.h"
#include "engine/strand.h"
#include "engine/task_list.h"
#include "net/channel.h"
#include "net/memory_account.h"

/* Maximum of one client's messages in the strand. */
#define EXECUTOR_MESSAGES 64

struct executor_message {
    struct task task;
    struct executor_mailbox *mailbox;
    struct executor_message *next;
    bool dropped;
    size_t len;
    uint8_t data[];
};

struct executor_mailbox {
    struct loop *loop;
    struct executor_handler *handler; /* NULL: the channel is closed */
    struct executor_handler_conf conf;
    struct memory_account *buffered;         /* NULL: memory is not accounted */
    _Atomic(struct executor_message *) done; /* executed or dropped; see note: notice */
    struct task notice;
    struct ref references;
};

struct executor_handler {
    struct handler handler;
    struct handler_context *context;
    const struct handler_step *step;
    struct executor_mailbox *mailbox; /* mailbox and strand are NULL until the first byte */
    struct strand *strand;
    struct task_list refused; /* messages that the strand has not accepted yet */
    size_t bytes;             /* size of all messages not passed on yet */
    bool eof;                 /* end of file, to pass on after the messages */
    int rejected;             /* error to pass on after the messages; 0: none */
};

static struct executor_handler *executor_of(struct handler *h)
{
    return CONTAINER_OF(h, struct executor_handler, handler);
}

static size_t executor_message_bytes(const struct executor_message *m)
{
    return sizeof(*m) + m->len;
}

static void executor_mailbox_hold(struct executor_mailbox *mailbox)
{
    ref_hold(&mailbox->references);
}

static void executor_free(struct executor_message *m)
{
    memory_account_charge(m->mailbox->buffered, executor_message_bytes(m), 0);
    free(m);
}

static void executor_mailbox_release(struct executor_mailbox *mailbox)
{
    struct executor_message *m, *next;

    if (!ref_release(&mailbox->references))
        return;
    for (m = atomic_load_explicit(&mailbox->done, memory_order_relaxed); m; m = next) {
        next = m->next;
        executor_free(m);
    }
    free(mailbox);
}

static void executor_work(const struct executor_handler_conf *conf, const uint8_t *data, size_t len)
{
    struct timespec left = {.tv_sec = conf->delay_ns / NS_PER_S,
                            .tv_nsec = conf->delay_ns % NS_PER_S};

    (void)data;
    (void)len;
    while (conf->delay_ns > 0 && nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

/* If the control queue, too, refuses the notice, the loop and its channels have ended. */
static void executor_mailbox_notify(struct executor_mailbox *mailbox)
{
    executor_mailbox_hold(mailbox);
    if (loop_submit(mailbox->loop, LOOP_TASKS, &mailbox->notice) < 0 &&
        loop_submit(mailbox->loop, LOOP_CONTROL, &mailbox->notice) < 0)
        executor_mailbox_release(mailbox);
}

static void executor_mailbox_put(struct executor_message *m)
{
    struct executor_mailbox *mailbox = m->mailbox;
    struct executor_message *newest = atomic_load_explicit(&mailbox->done, memory_order_relaxed);

    do
        m->next = newest;
    while (!atomic_compare_exchange_weak_explicit(&mailbox->done, &newest, m, memory_order_acq_rel,
                                                  memory_order_relaxed));
    if (!newest)
        executor_mailbox_notify(mailbox);
    executor_mailbox_release(mailbox);
}

static void executor_run_message(struct task *t)
{
    struct executor_message *m = CONTAINER_OF(t, struct executor_message, task);

    executor_work(&m->mailbox->conf, m->data, m->len);
    executor_mailbox_put(m);
}

/* Called on an executor thread, or on the loop by strand_destroy(). */
static void executor_drop_message(struct task *t)
{
    struct executor_message *m = CONTAINER_OF(t, struct executor_message, task);

    m->dropped = true;
    executor_mailbox_put(m);
}

static const struct task_type executor_message_type = {
    .name = "executor handler", .run = executor_run_message, .drop = executor_drop_message};

static void executor_submit_refused(struct executor_handler *x)
{
    while (x->refused.first) {
        struct task *t = x->refused.first;
        struct task *next = atomic_load_explicit(&t->next, memory_order_relaxed);
        int rc;

        executor_mailbox_hold(x->mailbox);
        rc = strand_submit(x->strand, t); /* ${t} may be freed when this returns */
        if (rc < 0) {
            executor_mailbox_release(x->mailbox);
            if (rc == -ESHUTDOWN)
                x->context->ops->abort(x->context, SESSION_DRAIN);
            return;
        }
        x->refused.first = next;
    }
}

static void executor_resume_if_half_free(struct executor_handler *x)
{
    if (!x->refused.first && x->bytes <= EXECUTOR_HANDLER_BYTES / 2)
        channel_resume_reading(x->handler.channel, CHANNEL_STOP_HANDLER);
}

static void executor_on_capacity(void *cookie)
{
    struct executor_handler *x = cookie;

    executor_submit_refused(x);
    executor_resume_if_half_free(x);
}

static void executor_run_notice(struct task *t);
static void executor_drop_notice(struct task *t);

static const struct task_type executor_notice_type = {
    .name = "executor handler", .run = executor_run_notice, .drop = executor_drop_notice};

static int executor_open(struct executor_handler *x)
{
    struct strand_conf conf = {.executor = x->step->executor,
                               .loop = channel_net(x->handler.channel)->loop,
                               .max_pending_tasks = EXECUTOR_MESSAGES,
                               .on_capacity = executor_on_capacity,
                               .cookie = x};
    struct executor_mailbox *mailbox = calloc(1, sizeof(*mailbox));
    int rc;

    if (!mailbox)
        return -ENOMEM;
    rc = strand_create(&x->strand, &conf);
    if (rc < 0) {
        free(mailbox);
        return rc;
    }
    mailbox->loop = conf.loop;
    mailbox->handler = x;
    mailbox->conf = *(const struct executor_handler_conf *)x->step->conf;
    mailbox->buffered = channel_net(x->handler.channel)->buffered;
    mailbox->notice.type = &executor_notice_type;
    ref_init(&mailbox->references);
    x->mailbox = mailbox;
    return 0;
}

static int executor_accept(struct executor_handler *x, const uint8_t *data, size_t len)
{
    struct executor_message *m = malloc(sizeof(*m) + len);

    if (!m)
        return -ENOMEM;
    *m = (struct executor_message){
        .task.type = &executor_message_type, .mailbox = x->mailbox, .len = len};
    memcpy(m->data, data, len);
    memory_account_charge(m->mailbox->buffered, 0, executor_message_bytes(m));
    if (x->bytes == 0)
        channel_set_input_pending(x->handler.channel, true);
    x->bytes += executor_message_bytes(m);
    task_list_append(&x->refused, &m->task);
    return 0;
}

static void executor_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct executor_handler *x = executor_of(h);
    bool others_wait = x->refused.first;

    if ((!x->mailbox && executor_open(x) < 0) || executor_accept(x, data, len) < 0) {
        x->context->ops->abort(x->context, SESSION_ERROR);
        return;
    }
    if (!others_wait)
        executor_submit_refused(x);
    if (x->refused.first || x->bytes > EXECUTOR_HANDLER_BYTES)
        channel_stop_reading(h->channel, CHANNEL_STOP_HANDLER);
}

/* Do not pass on bursts: executor_run_notice() makes its own. */
static void executor_burst(struct handler *h, bool begins)
{
    (void)h;
    (void)begins;
}

static void executor_close(struct executor_handler *x)
{
    struct task *t;

    if (!x->mailbox)
        return;
    x->mailbox->handler = NULL;
    strand_destroy(x->strand);
    while ((t = task_list_take(&x->refused)))
        executor_free(CONTAINER_OF(t, struct executor_message, task));
    executor_mailbox_release(x->mailbox);
}

static void executor_ended(struct handler *h, enum handler_end what, int error)
{
    struct executor_handler *x = executor_of(h);

    if (what == HANDLER_EOF && x->bytes > 0) {
        x->eof = true;
        return;
    }
    if (what == HANDLER_REJECTED && x->bytes > 0) {
        x->rejected = error;
        return;
    }
    if (what == HANDLER_CLOSED)
        executor_close(x);
    handler_ended(h->next, what, error);
}

static struct executor_message *executor_mailbox_take_done(struct executor_mailbox *mailbox)
{
    struct executor_message *m =
        atomic_exchange_explicit(&mailbox->done, NULL, memory_order_acq_rel);
    struct executor_message *oldest = NULL;

    while (m) {
        struct executor_message *next = m->next;

        m->next = oldest;
        oldest = m;
        m = next;
    }
    return oldest;
}

static void executor_pass_on(struct executor_handler *x, struct executor_message *m)
{
    x->bytes -= executor_message_bytes(m);
    if (channel_discards(x->handler.channel))
        return;
    if (m->dropped)
        x->context->ops->abort(x->context, SESSION_DRAIN);
    else
        handler_read(x->handler.next, m->data, m->len);
}

static void executor_pass_end(struct executor_handler *x)
{
    bool eof = x->eof;
    int rejected = x->rejected;

    x->eof = false;
    x->rejected = 0;
    if (channel_discards(x->handler.channel))
        return;
    if (rejected < 0)
        handler_ended(x->handler.next, HANDLER_REJECTED, rejected);
    else if (eof)
        handler_ended(x->handler.next, HANDLER_EOF, 0);
}

static void executor_finish_batch(struct executor_handler *x)
{
    if (x->bytes == 0) {
        executor_pass_end(x);
        channel_set_input_pending(x->handler.channel, false);
    }
    executor_resume_if_half_free(x);
}

static void executor_run_notice(struct task *t)
{
    struct executor_mailbox *mailbox = CONTAINER_OF(t, struct executor_mailbox, notice);
    struct executor_handler *x = mailbox->handler;
    struct executor_message *m = executor_mailbox_take_done(mailbox);

    bool burst = x && m && m->next;

    if (burst)
        handler_burst(x->handler.next, true);
    while (m) {
        struct executor_message *next = m->next;

        if (x)
            executor_pass_on(x, m);
        executor_free(m);
        m = next;
    }
    if (burst)
        handler_burst(x->handler.next, false);
    if (x)
        executor_finish_batch(x);
    executor_mailbox_release(mailbox);
}

static void executor_drop_notice(struct task *t)
{
    executor_mailbox_release(CONTAINER_OF(t, struct executor_mailbox, notice));
}

static size_t executor_held(const struct handler *h)
{
    return CONTAINER_OF(h, const struct executor_handler, handler)->bytes;
}

static bool executor_may_move(const struct handler *h)
{
    return CONTAINER_OF(h, const struct executor_handler, handler)->bytes == 0;
}

/* Mailbox and strand belong to the loop; the next byte makes new ones. */
static void executor_leave_loop(struct handler *h)
{
    struct executor_handler *x = executor_of(h);

    executor_close(x);
    x->mailbox = NULL;
    x->strand = NULL;
}

static const struct handler_ops executor_ops = {
    .name = "executor",
    .read = executor_read,
    .burst = executor_burst,
    .ended = executor_ended,
    .held = executor_held,
    .may_move = executor_may_move,
    .leave_loop = executor_leave_loop,
    .save = handler_save_nothing, /* see executor_may_move() */
    .restore = handler_restore_nothing};

static void executor_add(void *state, struct channel *ch, struct handler_context *context,
                         const struct handler_step *step)
{
    struct executor_handler *x = state;

    MUST(step->executor);
    x->context = context;
    x->step = step;
    pipeline_add(&ch->pipeline, &x->handler, &executor_ops);
}

const struct handler_type executor_handler_type = {
    .name = "executor", .state_bytes = sizeof(struct executor_handler), .add = executor_add};
