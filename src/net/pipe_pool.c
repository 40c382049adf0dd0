#include "net/pipe_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "net/descriptor_budget.h"

/* Empty pipes kept per loop. */
#define PIPE_POOL_KEEP 8

#define PIPE_DESCRIPTORS 2

void pipe_pool_init(struct pipe_pool *pool)
{
    *pool = (struct pipe_pool){.n_free = 0};
    list_init(&pool->free);
    list_init(&pool->held);
}

static void pipe_close(struct pipe_pool *pool, struct pipe *p)
{
    close(p->read_fd);
    close(p->write_fd);
    if (!p->lent)
        pool->has_own = false;
    else if (pool->descriptors)
        descriptor_budget_return(pool->descriptors, PIPE_DESCRIPTORS);
    free(p);
}

static struct pipe *pipe_pool_take_free(struct pipe_pool *pool)
{
    struct pipe *p = LIST_FIRST(&pool->free, struct pipe, link);

    list_remove(&p->link);
    pool->n_free--;
    return p;
}

void pipe_pool_close(struct pipe_pool *pool)
{
    while (!list_empty(&pool->free))
        pipe_close(pool, pipe_pool_take_free(pool));
}

static int pipe_open(struct pipe **out, bool lent)
{
    struct pipe *p = malloc(sizeof(*p));
    int fds[2], rc;

    if (!p)
        return -ENOMEM;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        rc = -errno;
        free(p);
        return rc;
    }
    *p = (struct pipe){.read_fd = fds[0], .write_fd = fds[1], .lent = lent};
    list_init(&p->link);
    *out = p;
    return 0;
}

int pipe_pool_get(struct pipe_pool *pool, struct pipe **out)
{
    bool lent = pool->has_own;
    int rc;

    if (!list_empty(&pool->free)) {
        *out = pipe_pool_take_free(pool);
        return 0;
    }
    if (lent && pool->descriptors && !descriptor_budget_lend(pool->descriptors, PIPE_DESCRIPTORS))
        return -EMFILE;
    rc = pipe_open(out, lent);
    if (rc == 0)
        pool->has_own = true;
    else if (lent && pool->descriptors)
        descriptor_budget_return(pool->descriptors, PIPE_DESCRIPTORS);
    return rc;
}

void pipe_pool_hold(struct pipe_pool *pool, struct pipe *p, struct channel *holder)
{
    p->holder = holder;
    list_append(&pool->held, &p->link);
}

int pipe_pool_adopt(struct pipe_pool *pool, struct pipe **out, const int *fds, size_t bytes)
{
    struct pipe *p = malloc(sizeof(*p));
    int rc = p ? 0 : -ENOMEM;

    if (p && pool->descriptors && !descriptor_budget_lend(pool->descriptors, PIPE_DESCRIPTORS))
        rc = -EMFILE;
    if (rc < 0) {
        close(fds[0]);
        close(fds[1]);
        free(p);
        return rc;
    }
    *p = (struct pipe){
        .read_fd = fds[0], .write_fd = fds[1], .bytes = bytes, .lent = true, .adopted = true};
    list_init(&p->link);
    *out = p;
    return 0;
}

bool pipe_pool_is_drained(const struct pipe *p)
{
    int n;

    return p->adopted && (ioctl(p->read_fd, FIONREAD, &n) < 0 || n == 0);
}

/* The loop's own pipe becomes a lent one: the loop may open another. */
bool pipe_pool_give(struct pipe_pool *pool, struct pipe *p)
{
    MUST(p->holder);
    if (!p->lent && pool->descriptors &&
        !descriptor_budget_lend(pool->descriptors, PIPE_DESCRIPTORS))
        return false;
    if (!p->lent)
        pool->has_own = false;
    p->lent = true;
    p->holder = NULL;
    list_remove(&p->link);
    return true;
}

struct pipe *pipe_pool_first_lent(const struct pipe_pool *pool)
{
    list_for_each (node, &pool->held) {
        struct pipe *p = LIST_ENTRY(node, struct pipe, link);

        if (p->lent)
            return p;
    }
    return NULL;
}

/* A loop's own pipe, which is not lent, is always kept; an adopted one never. */
static bool pipe_pool_may_keep(const struct pipe_pool *pool, const struct pipe *p)
{
    return !p->lent || (!p->adopted && pool->n_free < PIPE_POOL_KEEP &&
                        !(pool->descriptors && descriptor_budget_wanted_back(pool->descriptors)));
}

void pipe_pool_put(struct pipe_pool *pool, struct pipe *p)
{
    list_remove(&p->link);
    p->holder = NULL;
    if (p->bytes > 0 || !pipe_pool_may_keep(pool, p)) {
        pipe_close(pool, p);
        return;
    }
    list_append(pool->free.next, &p->link); /* reused first: warm in the cache */
    pool->n_free++;
}

void pipe_pool_trim(struct pipe_pool *pool)
{
    list_for_each_safe (node, &pool->free) {
        struct pipe *p = LIST_ENTRY(node, struct pipe, link);

        if (!p->lent)
            continue;
        list_remove(&p->link);
        pool->n_free--;
        pipe_close(pool, p);
    }
}
