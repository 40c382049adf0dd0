#include "tls/tls_step.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/loop.h"
#include "tls/tls_handshakes.h"

static void tls_step_discard(struct tls_step *step)
{
    tls_stream_free(step->stream);
    tls_step_free(step);
}

static bool tls_step_is_abandoned(const struct tls_step *step)
{
    return atomic_load_explicit(&step->is_abandoned, memory_order_relaxed);
}

static void tls_step_arrive(struct task *t)
{
    struct tls_step *step = CONTAINER_OF(t, struct tls_step, arrival);

    if (tls_step_is_abandoned(step))
        tls_step_discard(step);
    else
        step->done(step);
}

/* The loop has ended, and its connections with it. */
static void tls_step_arrive_too_late(struct task *t)
{
    tls_step_discard(CONTAINER_OF(t, struct tls_step, arrival));
}

static const struct task_type tls_step_arrival = {
    .name = "TLS handshake", .run = tls_step_arrive, .drop = tls_step_arrive_too_late};

static void tls_step_give_back(struct tls_job *job, bool wakes)
{
    struct tls_step *step = CONTAINER_OF(job, struct tls_step, job);
    int rc = wakes ? loop_submit(job->loop, LOOP_CONTROL, &step->arrival)
                   : loop_submit_lazy(job->loop, LOOP_CONTROL, &step->arrival);

    if (rc < 0)
        tls_step_discard(step);
}

static void tls_step_handshake(struct tls_step *step)
{
    tls_stream_input(step->stream, buffer_front(&step->in), buffer_bytes(&step->in));
    do {
        const uint8_t *records;
        size_t n;

        step->result = tls_stream_handshake(step->stream);
        records = tls_stream_output(step->stream, &n);
        if (n > 0 && buffer_append(&step->out, records, n) < 0)
            step->error = -ENOMEM;
    } while (step->result == TLS_STREAM_OUTPUT && step->error == 0);
    buffer_consume(&step->in, buffer_bytes(&step->in) - tls_stream_input_left(step->stream));
    tls_stream_input(step->stream, NULL, 0);
}

static void tls_step_run(struct tls_job *job)
{
    struct tls_step *step = CONTAINER_OF(job, struct tls_step, job);

    if (!tls_step_is_abandoned(step))
        tls_step_handshake(step);
}

static void tls_step_drop(struct tls_job *job)
{
    struct tls_step *step = CONTAINER_OF(job, struct tls_step, job);

    step->error = -ETIMEDOUT;
    tls_step_give_back(job, true);
}

static const struct tls_job_type tls_step_type = {.name = "TLS handshake",
                                                  .run = tls_step_run,
                                                  .give_back = tls_step_give_back,
                                                  .drop = tls_step_drop};

int tls_step_create(struct tls_step **out, struct loop *loop, void (*done)(struct tls_step *step),
                    void *cookie)
{
    struct tls_step *step = calloc(1, sizeof(*step));

    if (!step)
        return -ENOMEM;
    step->job.type = &tls_step_type;
    step->arrival.type = &tls_step_arrival;
    step->job.loop = loop;
    step->done = done;
    step->cookie = cookie;
    *out = step;
    return 0;
}

int tls_step_submit(struct tls_step *step, struct tls_handshakes *pool, int64_t deadline_ns,
                    bool first)
{
    MUST(loop_is_current(step->job.loop));
    return tls_handshakes_submit(pool, &step->job, deadline_ns, first);
}

void tls_step_run_here(struct tls_step *step)
{
    MUST(loop_is_current(step->job.loop));
    tls_step_handshake(step);
    step->done(step);
}

void tls_step_abandon(struct tls_step *step)
{
    MUST(loop_is_current(step->job.loop));
    atomic_store_explicit(&step->is_abandoned, true, memory_order_relaxed);
}

void tls_step_free(struct tls_step *step)
{
    if (!step)
        return;
    buffer_clear(&step->in);
    buffer_clear(&step->out);
    free(step);
}
