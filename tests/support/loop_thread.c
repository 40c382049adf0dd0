/* support/loop_thread: see loop_thread.h. */
#include "support/loop_thread.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* What the kernel says of a thread. */
struct reading {
    char state;
    unsigned long voluntary, forced; /* how often it left a processor */
};

struct question {
    struct task task;
    struct loop_thread *answer;
    sem_t answered;
};

static void question_run(struct task *t)
{
    struct question *q = CONTAINER_OF(t, struct question, task);

    q->answer->thread = pthread_self();
    q->answer->tid = gettid();
    sem_post(&q->answered);
}

static void question_drop(struct task *t)
{
    sem_post(&CONTAINER_OF(t, struct question, task)->answered);
}

int loop_thread_find(struct loop_thread *out, struct loop *loop)
{
    static const struct task_type type = {
        .name = "which thread", .run = question_run, .drop = question_drop};
    struct question q = {.task.type = &type, .answer = out};
    int rc;

    *out = (struct loop_thread){.tid = 0};
    sem_init(&q.answered, 0, 0);
    rc = loop_submit(loop, LOOP_CONTROL, &q.task);
    if (rc == 0)
        while (sem_wait(&q.answered) < 0)
            ; /* a signal came first */
    sem_destroy(&q.answered);
    return rc == 0 && out->tid == 0 ? -ESHUTDOWN : rc;
}

static struct reading read_kernel(pid_t tid)
{
    struct reading r = {.state = '?'};
    char name[64], line[256];
    FILE *f;

    snprintf(name, sizeof(name), "/proc/self/task/%d/status", (int)tid);
    f = fopen(name, "re");
    if (!f)
        return r;
    while (fgets(line, sizeof(line), f)) {
        (void)sscanf(line, "State: %c", &r.state);
        (void)sscanf(line, "voluntary_ctxt_switches: %lu", &r.voluntary);
        (void)sscanf(line, "nonvoluntary_ctxt_switches: %lu", &r.forced);
    }
    fclose(f);
    return r;
}

bool loop_thread_sleeps(const struct loop_thread *t, int64_t for_ns)
{
    const struct timespec nap = {.tv_nsec = for_ns};
    struct reading before = read_kernel(t->tid), after;

    nanosleep(&nap, NULL);
    after = read_kernel(t->tid);
    return before.state == 'S' && after.state == 'S' && before.voluntary == after.voluntary &&
           before.forced == after.forced;
}
