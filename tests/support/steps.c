#include "support/steps.h"

#include <check.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "engine/loop.h"
#include "support/until.h"
#include "tls/tls_handshakes.h"

struct steps steps;
static atomic_uint n_done;

static void step_note(struct step *s)
{
    struct loop_stats stats;

    s->order = atomic_fetch_add(&n_done, 1) + 1;
    prctl(PR_GET_NAME, s->thread);
    s->nice = getpriority(PRIO_PROCESS, 0);
    if (loop_current()) {
        loop_stats(loop_current(), &stats);
        s->turn = stats.turns;
    }
}

static void step_run(struct tls_job *job)
{
    struct step *s = CONTAINER_OF(job, struct step, job);

    step_note(s);
    if (s->then)
        ck_assert_int_eq(tls_handshakes_submit(s->p, &s->then->job, CLOCK_NEVER, false), 0);
    atomic_fetch_add(&s->run, 1);
    while (s->gate && sem_wait(s->gate) < 0)
        continue;
}

static void step_give_back(struct tls_job *job, bool wakes)
{
    struct step *s = CONTAINER_OF(job, struct step, job);

    s->woke = wakes;
    atomic_fetch_add(&s->given_back, 1);
}

static void step_drop(struct tls_job *job)
{
    struct step *s = CONTAINER_OF(job, struct step, job);

    step_note(s);
    atomic_fetch_add(&s->dropped, 1);
}

static const struct tls_job_type step_type = {"step", step_run, step_give_back, step_drop};

void steps_setup(void)
{
    for (unsigned i = 0; i < MANY; i++)
        steps.steps[i].job.type = &step_type;
    steps.blocker.job.type = &step_type;
    ck_assert_int_eq(sem_init(&steps.gate, 0, 0), 0);
}

void steps_start(unsigned threads, unsigned max_pending)
{
    const struct tls_handshakes_conf conf = {.threads = threads, .max_pending = max_pending};

    ck_assert_int_eq(tls_handshakes_start(&conf, &steps.pool), 0);
}

struct tls_handshakes_stats steps_stats(void)
{
    struct tls_handshakes_stats s;

    tls_handshakes_stats(steps.pool, &s);
    return s;
}

void steps_submit(struct step *s, int64_t deadline_ns, bool first)
{
    ck_assert_int_eq(tls_handshakes_submit(steps.pool, &s->job, deadline_ns, first), 0);
}

void steps_block(void)
{
    steps.blocker.gate = &steps.gate;
    steps_submit(&steps.blocker, CLOCK_NEVER, true);
    UNTIL(atomic_load(&steps.blocker.run) == 1);
}

void steps_expect_once(const struct step *s, bool runs)
{
    ck_assert_uint_eq(atomic_load(&s->run), runs);
    ck_assert_uint_eq(atomic_load(&s->dropped), !runs);
}
