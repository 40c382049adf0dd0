#include "tls/tls_handshakes.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/affinity.h"
#include "engine/loop.h"
#include "stats/figure.h"

#define TLS_HANDSHAKES_NAME "hs"

/*
 * note: batch. A loop that wakes for each step preempts the thread each time. While more steps
 * wait, a thread therefore collects this many finished steps, and then wakes each loop once.
 */
#define TLS_HANDSHAKES_BATCH 4

struct tls_handshakes_thread {
    struct tls_handshakes *pool;
    unsigned number; /* from 1 */
    pthread_t id;
    struct tls_job *done[TLS_HANDSHAKES_BATCH]; /* finished, not given back; see note: batch */
    unsigned n_done;
};

/* The steps that a loop runs itself. Only this loop adds and takes steps. */
struct tls_handshakes_loop {
    struct tls_handshakes *pool;
    struct loop *loop;
    struct list node;
    struct task turn;
    bool is_queued; /* `turn` is submitted */
    struct tls_jobs jobs;
};

struct tls_handshakes {
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t wake;
    struct tls_handshakes_conf conf;
    struct affinity affinity;
    struct tls_jobs jobs;
    unsigned n_first, n_further; /* pending steps, including those of loops */
    uint64_t run, run_on_loops, dropped, refused;
    bool stopped;
    bool start_failed; /* the last start of a thread failed, and was logged */
    unsigned n_idle;
    unsigned n_threads;
    struct list loops;
    struct tls_handshakes_thread threads[];
};

/* Locked. */
static void tls_handshakes_count_out(struct tls_handshakes *pool, const struct tls_job *job)
{
    if (job->first)
        pool->n_first--;
    else
        pool->n_further--;
}

/* Locked. Run or drop ${job}, unlocked meanwhile. */
static void tls_handshakes_finish(struct tls_handshakes *pool, struct tls_job *job, bool runs)
{
    tls_handshakes_count_out(pool, job);
    if (runs)
        pool->run++;
    else
        pool->dropped++;
    pthread_mutex_unlock(&pool->lock);
    if (runs)
        job->type->run(job);
    else
        job->type->drop(job);
    pthread_mutex_lock(&pool->lock);
}

/* Locked. Run the next step of ${jobs} and return it; NULL: no step, or a late one, now dropped. */
static struct tls_job *tls_handshakes_step(struct tls_handshakes *pool, struct tls_jobs *jobs)
{
    int64_t now_ns = clock_now_ns();
    struct tls_job *job = tls_jobs_take(jobs, now_ns);
    bool runs = job && !tls_job_is_late(job, now_ns);

    if (job)
        tls_handshakes_finish(pool, job, runs);
    return runs ? job : NULL;
}

/* Locked. */
static void tls_handshakes_drop_all(struct tls_handshakes *pool, struct tls_jobs *jobs)
{
    struct tls_job *job;

    while ((job = tls_jobs_take(jobs, CLOCK_NEVER)))
        tls_handshakes_finish(pool, job, false);
}

/* ---- threads ---- */

static void tls_handshakes_thread_init(const struct tls_handshakes_thread *me)
{
    const struct tls_handshakes *pool = me->pool;
    char name[32];
    int nice;

    snprintf(name, sizeof(name), TLS_HANDSHAKES_NAME "-%u", me->number);
    prctl(PR_SET_NAME, name);
    affinity_take(&pool->affinity, name);
    nice = getpriority(PRIO_PROCESS, 0) + (int)pool->conf.nice; /* 0: this thread; see sched(7) */
    if (pool->conf.nice > 0 && setpriority(PRIO_PROCESS, 0, nice) < 0)
        log_warning("thread %s: cannot set its nice value to %d: %s", name, nice, strerror(errno));
}

/* Locked; unlocks meanwhile. Give finished steps back; see note: batch. */
static void tls_handshakes_give_back(struct tls_handshakes_thread *me)
{
    struct tls_job **done = me->done;

    pthread_mutex_unlock(&me->pool->lock);
    for (unsigned i = 0; i < me->n_done; i++) {
        bool is_last = true;

        for (unsigned k = i + 1; k < me->n_done; k++)
            is_last &= done[k]->loop != done[i]->loop;
        done[i]->type->give_back(done[i], is_last);
    }
    me->n_done = 0;
    pthread_mutex_lock(&me->pool->lock);
}

static void tls_handshakes_wait(struct tls_handshakes_thread *me)
{
    struct tls_handshakes *pool = me->pool;

    while (pool->jobs.n == 0 && !pool->stopped) {
        if (me->n_done > 0) {
            tls_handshakes_give_back(me);
            continue;
        }
        pool->n_idle++;
        pthread_cond_wait(&pool->wake, &pool->lock);
        pool->n_idle--;
    }
}

/* See note: yield. */
static void tls_handshakes_yield(struct tls_handshakes *pool)
{
    pthread_mutex_unlock(&pool->lock);
    sched_yield();
    pthread_mutex_lock(&pool->lock);
}

static void *tls_handshakes_main(void *arg)
{
    struct tls_handshakes_thread *me = arg;
    struct tls_handshakes *pool = me->pool;

    tls_handshakes_thread_init(me);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct tls_job *job;

        tls_handshakes_wait(me);
        tls_handshakes_yield(pool);
        if (pool->stopped)
            break;
        job = tls_handshakes_step(pool, &pool->jobs);
        if (job)
            me->done[me->n_done++] = job;
        if (me->n_done == TLS_HANDSHAKES_BATCH)
            tls_handshakes_give_back(me);
    }
    tls_handshakes_give_back(me);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Locked. */
static int tls_handshakes_start_thread(struct tls_handshakes *pool)
{
    struct tls_handshakes_thread *t = &pool->threads[pool->n_threads];
    int error;

    t->pool = pool;
    t->number = pool->n_threads + 1;
    error = pthread_create(&t->id, NULL, tls_handshakes_main, t);
    if (error == 0)
        pool->n_threads++;
    else if (!pool->start_failed)
        log_warning("handshakes: cannot start another thread: %s; threads running: %u",
                    strerror(error), pool->n_threads);
    pool->start_failed = error != 0;
    return error == 0 ? 0 : -EAGAIN;
}

/* Locked. Wake or start a thread for one more step. */
static int tls_handshakes_call_thread(struct tls_handshakes *pool)
{
    if (pool->n_idle > 0)
        pthread_cond_signal(&pool->wake);
    if (pool->n_idle <= pool->jobs.n && pool->n_threads < pool->conf.threads &&
        tls_handshakes_start_thread(pool) < 0 && pool->n_threads == 0)
        return -EAGAIN;
    return 0;
}

/* ---- on the loop ---- */

static void tls_handshakes_run_turn(struct task *t)
{
    struct tls_handshakes_loop *l = CONTAINER_OF(t, struct tls_handshakes_loop, turn);
    struct tls_handshakes *pool = l->pool;
    struct tls_job *job;

    pthread_mutex_lock(&pool->lock);
    job = tls_handshakes_step(pool, &l->jobs);
    if (job) {
        pool->run_on_loops++;
        job->type->give_back(job, true);
    }
    l->is_queued = l->jobs.n > 0 && loop_submit(l->loop, LOOP_TAIL, &l->turn) == 0;
    if (!l->is_queued)
        tls_handshakes_drop_all(pool, &l->jobs);
    pthread_mutex_unlock(&pool->lock);
}

/* The loop has ended. */
static void tls_handshakes_drop_turn(struct task *t)
{
    struct tls_handshakes_loop *l = CONTAINER_OF(t, struct tls_handshakes_loop, turn);

    pthread_mutex_lock(&l->pool->lock);
    tls_handshakes_drop_all(l->pool, &l->jobs);
    l->is_queued = false;
    pthread_mutex_unlock(&l->pool->lock);
}

static const struct task_type tls_handshakes_turn_type = {
    .name = "handshake", .run = tls_handshakes_run_turn, .drop = tls_handshakes_drop_turn};

/* Locked. Find or add the entry of the calling loop; NULL: out of memory. */
static struct tls_handshakes_loop *tls_handshakes_of_loop(struct tls_handshakes *pool)
{
    struct loop *loop = loop_current();
    struct tls_handshakes_loop *l;

    MUST(loop);
    for (struct list *at = pool->loops.next; at != &pool->loops; at = at->next) {
        l = LIST_ENTRY(at, struct tls_handshakes_loop, node);
        if (l->loop == loop)
            return l;
    }
    l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->pool = pool;
    l->loop = loop;
    l->turn.type = &tls_handshakes_turn_type;
    tls_jobs_init(&l->jobs);
    list_append(&pool->loops, &l->node);
    return l;
}

/* Locked. */
static int tls_handshakes_call_loop(struct tls_handshakes *pool, struct tls_jobs **jobs)
{
    struct tls_handshakes_loop *l = tls_handshakes_of_loop(pool);
    int rc = 0;

    if (!l)
        return -ENOMEM;
    if (!l->is_queued)
        rc = loop_submit(l->loop, LOOP_TAIL, &l->turn);
    if (rc < 0)
        return rc;
    l->is_queued = true;
    *jobs = &l->jobs;
    return 0;
}

/* ---- both ---- */

int tls_handshakes_start(const struct tls_handshakes_conf *conf, struct tls_handshakes **out)
{
    struct tls_handshakes *pool;

    MUST(conf->threads <= TLS_HANDSHAKES_THREADS_MAX);
    pool = calloc(1, sizeof(*pool) + conf->threads * sizeof(pool->threads[0]));
    if (!pool)
        return -ENOMEM;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->conf = *conf;
    affinity_note(&pool->affinity, &(struct affinity_conf){.pinned = false});
    tls_jobs_init(&pool->jobs);
    list_init(&pool->loops);
    *out = pool;
    return 0;
}

/* See note: young. */
static bool tls_handshakes_wants_loop(const struct tls_handshakes *pool, const struct tls_job *job)
{
    return pool->conf.threads == 0 || (job->on_loop && pool->conf.threads <= pool->conf.loops);
}

/* Locked. Choose the queue for ${job}, and wake its loop or thread. */
static int tls_handshakes_admit(struct tls_handshakes *pool, const struct tls_job *job,
                                struct tls_jobs **jobs)
{
    if (pool->stopped)
        return -ESHUTDOWN;
    if ((job->first ? pool->n_first : pool->n_further) >= pool->conf.max_pending)
        return -EBUSY;
    if (tls_handshakes_wants_loop(pool, job))
        return tls_handshakes_call_loop(pool, jobs);
    *jobs = &pool->jobs;
    return tls_handshakes_call_thread(pool);
}

int tls_handshakes_submit(struct tls_handshakes *pool, struct tls_job *job, int64_t deadline_ns,
                          bool first)
{
    struct tls_jobs *jobs;
    int rc;

    job->deadline_ns = deadline_ns;
    job->first = first;
    pthread_mutex_lock(&pool->lock);
    rc = tls_handshakes_admit(pool, job, &jobs);
    if (rc == 0) {
        job->submitted_ns = clock_now_ns();
        tls_jobs_add(jobs, job);
        if (first)
            pool->n_first++;
        else
            pool->n_further++;
    } else {
        pool->refused++;
    }
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

void tls_handshakes_stop(struct tls_handshakes *pool)
{
    unsigned n;

    pthread_mutex_lock(&pool->lock);
    pool->stopped = true;
    n = pool->n_threads;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < n; i++)
        pthread_join(pool->threads[i].id, NULL);
    pthread_mutex_lock(&pool->lock);
    tls_handshakes_drop_all(pool, &pool->jobs);
    pool->n_threads = 0;
    pthread_mutex_unlock(&pool->lock);
}

void tls_handshakes_free(struct tls_handshakes *pool)
{
    if (!pool)
        return;
    tls_handshakes_stop(pool);
    MUST(pool->n_first + pool->n_further == 0);
    while (!list_empty(&pool->loops)) {
        struct tls_handshakes_loop *l =
            LIST_ENTRY(pool->loops.next, struct tls_handshakes_loop, node);

        list_remove(&l->node);
        free(l);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Locked. */
static int64_t tls_handshakes_oldest_at_ns(const struct tls_handshakes *pool)
{
    int64_t at_ns = tls_jobs_oldest_at_ns(&pool->jobs);

    for (const struct list *at = pool->loops.next; at != &pool->loops; at = at->next) {
        const struct tls_handshakes_loop *l =
            CONTAINER_OF(at, const struct tls_handshakes_loop, node);

        at_ns = clock_sooner(at_ns, tls_jobs_oldest_at_ns(&l->jobs));
    }
    return at_ns;
}

void tls_handshakes_stats(struct tls_handshakes *pool, struct tls_handshakes_stats *out)
{
    int64_t at_ns;

    pthread_mutex_lock(&pool->lock);
    at_ns = tls_handshakes_oldest_at_ns(pool);
    *out = (struct tls_handshakes_stats){.threads = pool->n_threads,
                                         .steps_run = pool->run,
                                         .steps_on_loops = pool->run_on_loops,
                                         .steps_dropped = pool->dropped,
                                         .steps_refused = pool->refused,
                                         .steps_pending = pool->n_first + pool->n_further,
                                         .oldest_ns =
                                             at_ns == CLOCK_NEVER ? 0 : clock_now_ns() - at_ns};
    pthread_mutex_unlock(&pool->lock);
}

static const struct figure tls_handshakes_rows[] = {
    FIGURE_OF(struct tls_handshakes_stats, GAUGE, NUMBER, threads, "Threads that were started."),
    FIGURE_OF(struct tls_handshakes_stats, COUNTER, NUMBER, steps_run,
              "Steps of handshakes that ran."),
    FIGURE_OF(struct tls_handshakes_stats, COUNTER, NUMBER, steps_on_loops,
              "Steps that ran on a loop, which had no established session."),
    FIGURE_OF(struct tls_handshakes_stats, COUNTER, NUMBER, steps_dropped,
              "Steps that waited until handshake_timeout, and were not run."),
    FIGURE_OF(struct tls_handshakes_stats, COUNTER, NUMBER, steps_refused,
              "Steps that were refused, as max_pending others waited."),
    FIGURE_OF(struct tls_handshakes_stats, GAUGE, NUMBER, steps_pending, "Steps that wait."),
    FIGURE_MS_OF(struct tls_handshakes_stats, GAUGE, oldest, 1,
                 "Age of the oldest step that waits."),
};

static const struct figure_table tls_handshakes_table = {
    FIGURE_TABLE(struct tls_handshakes_stats, tls_handshakes_rows)};

void tls_handshakes_figures(struct tls_handshakes *pool, struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_HANDSHAKES};
    struct tls_handshakes_stats s;

    tls_handshakes_stats(pool, &s);
    figure_show(v, &tls_handshakes_table, &object, &s);
}
