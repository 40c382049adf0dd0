/* support/endpoints: see endpoints.h. */
#include "support/endpoints.h"

#include <check.h>
#include <stdlib.h>

#include "base/hash.h"

void endpoints_open(struct endpoints *es, unsigned n)
{
    *es = (struct endpoints){.n = n};
    es->all = calloc(n + 1, sizeof(*es->all));
    es->list = calloc(n + 1, sizeof(*es->list));
    es->loads = calloc(n + 1, sizeof(*es->loads));
    ck_assert(es->all && es->list && es->loads);
    for (unsigned i = 0; i < n; i++) {
        es->all[i].weight = 1;
        es->all[i].hash = hash_stable(&i, sizeof(i));
        es->all[i].load = &es->loads[i];
        es->all[i].group = &es->group;
        es->list[i] = &es->all[i];
    }
}

void endpoints_close(struct endpoints *es)
{
    free(es->loads);
    free(es->list);
    free(es->all);
}

void endpoints_weights(struct endpoints *es, const unsigned *weights)
{
    for (unsigned i = 0; i < es->n; i++)
        es->all[i].weight = weights[i];
}

struct balancer *endpoints_balancer(struct endpoints *es, enum balancer_kind kind)
{
    struct balancer *b = NULL;

    es->conf.kind = kind;
    es->conf.endpoints = es->list;
    es->conf.n_endpoints = es->n;
    ck_assert_int_eq(balancer_create(&b, &es->conf), 0);
    return b;
}

int endpoints_next(struct endpoints *es, struct balancer *b, struct balancer_pick_state *walk)
{
    struct endpoint *e = NULL;
    int rc = balancer_pick(b, walk, &e);

    return rc < 0 ? rc : (int)(e - es->all);
}

int endpoints_pick(struct endpoints *es, struct balancer *b, uint64_t key)
{
    struct balancer_pick_state walk;

    balancer_begin(&walk, key);
    return endpoints_next(es, b, &walk);
}

int endpoints_touch(struct endpoints *es, struct balancer *b, uint64_t key)
{
    int i = endpoints_pick(es, b, key);

    if (i >= 0)
        endpoint_leave(&es->all[i]);
    return i;
}

void endpoints_leave_all(struct endpoints *es)
{
    for (unsigned i = 0; i < es->n; i++)
        while (endpoint_active(&es->all[i]) > 0)
            endpoint_leave(&es->all[i]);
}
