#include "tls/tls_jobs.h"

void tls_jobs_init(struct tls_jobs *q)
{
    list_init(&q->first);
    list_init(&q->further);
    q->n = 0;
    q->taken_at_ns = 0;
}

static struct tls_job *tls_jobs_oldest(const struct list *l)
{
    return list_empty(l) ? NULL : LIST_ENTRY(l->next, struct tls_job, node);
}

static struct tls_job *tls_jobs_next(const struct list *l, int64_t now_ns)
{
    struct tls_job *oldest = tls_jobs_oldest(l);

    if (!oldest || tls_job_is_late(oldest, now_ns) ||
        now_ns - oldest->submitted_ns < TLS_JOBS_YOUNG_NS)
        return oldest;
    return LIST_ENTRY(l->prev, struct tls_job, node);
}

void tls_jobs_add(struct tls_jobs *q, struct tls_job *job)
{
    list_append(job->first ? &q->first : &q->further, &job->node);
    if (q->n++ == 0)
        q->taken_at_ns = job->submitted_ns;
}

static void tls_jobs_postpone(const struct list *l, int64_t delay_ns)
{
    list_for_each (node, l) {
        struct tls_job *job = LIST_ENTRY(node, struct tls_job, node);

        job->deadline_ns = clock_add_ns(job->deadline_ns, delay_ns);
    }
}

struct tls_job *tls_jobs_take(struct tls_jobs *q, int64_t now_ns)
{
    int64_t away_ns = now_ns - q->taken_at_ns;
    struct tls_job *job;

    if (q->n > 0 && away_ns >= TLS_JOBS_ABSENCE_NS) {
        tls_jobs_postpone(&q->further, away_ns);
        tls_jobs_postpone(&q->first, away_ns);
    }
    q->taken_at_ns = now_ns;
    job = tls_jobs_next(&q->further, now_ns);
    if (!job)
        job = tls_jobs_next(&q->first, now_ns);
    if (job) {
        list_remove(&job->node);
        q->n--;
    }
    return job;
}

int64_t tls_jobs_oldest_at_ns(const struct tls_jobs *q)
{
    const struct tls_job *first = tls_jobs_oldest(&q->first);
    const struct tls_job *further = tls_jobs_oldest(&q->further);

    return clock_sooner(first ? first->submitted_ns : CLOCK_NEVER,
                        further ? further->submitted_ns : CLOCK_NEVER);
}
