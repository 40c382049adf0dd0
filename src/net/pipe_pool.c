/* net/pipe_pool: see pipe_pool.h. */
#include "net/pipe_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Empty pipes a loop keeps: two descriptors each, so not many. */
#define PIPE_POOL_KEEP 8

void pipe_pool_init(struct pipe_pool *pool)
{
    pool->free = NULL;
    pool->n_free = 0;
}

static void pipe_close(struct pipe *p)
{
    close(p->read_fd);
    close(p->write_fd);
    free(p);
}

void pipe_pool_close(struct pipe_pool *pool)
{
    while (pool->free) {
        struct pipe *p = pool->free;

        pool->free = p->next;
        pipe_close(p);
    }
    pool->n_free = 0;
}

int pipe_pool_get(struct pipe_pool *pool, struct pipe **out)
{
    struct pipe *p = pool->free;
    int fds[2], rc;

    if (p) {
        pool->free = p->next;
        pool->n_free--;
        *out = p;
        return 0;
    }
    p = malloc(sizeof(*p));
    if (!p)
        return -ENOMEM;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        rc = -errno;
        free(p);
        return rc;
    }
    *p = (struct pipe){.read_fd = fds[0], .write_fd = fds[1]};
    *out = p;
    return 0;
}

void pipe_pool_put(struct pipe_pool *pool, struct pipe *p)
{
    if (p->bytes > 0 || pool->n_free >= PIPE_POOL_KEEP) {
        pipe_close(p);
        return;
    }
    p->next = pool->free;
    pool->free = p;
    pool->n_free++;
}
