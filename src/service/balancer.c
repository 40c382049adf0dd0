#include "service/balancer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
struct balancer {
    unsigned n;
    struct endpoint **list;
    atomic_uint next;
};
int balancer_create(struct balancer **out, const struct balancer_conf *c)
{
    struct balancer *b = calloc(1, sizeof(*b));
    b->n = c->n_endpoints;
    b->list = calloc(b->n, sizeof(*b->list));
    memcpy(b->list, c->endpoints, b->n * sizeof(*b->list));
    *out = b;
    return 0;
}
void balancer_destroy(struct balancer *b)
{
    if (b)
        free(b->list);
    free(b);
}
void balancer_begin(struct balancer_walk *w, uint64_t key)
{
    w->key = key;
    w->n_tried = 0;
}
bool balancer_panics(const struct balancer *b)
{
    (void)b;
    return false;
}
int balancer_pick(struct balancer *b, struct balancer_walk *w, struct endpoint **out)
{
    unsigned at = atomic_fetch_add(&b->next, 1);
    int rc = -ENOENT;
    for (int backup = 0; backup < 2; backup++)
        for (unsigned i = 0; i < b->n; i++) {
            unsigned k = (at + i) % b->n;
            struct endpoint *e = b->list[k];
            int t = 0;
            for (unsigned j = 0; j < w->n_tried; j++)
                t |= w->tried[j] == k;
            if (t || w->n_tried >= BALANCER_TRIES || e->backup != backup ||
                (endpoint_load(e) & ENDPOINT_UNFIT))
                continue;
            if (endpoint_enter(e) < 0) {
                rc = -EBUSY;
                continue;
            }
            w->tried[w->n_tried++] = (uint16_t)k;
            *out = e;
            return 0;
        }
    return rc;
}
