/*
 * service/balancer_cycle: smooth weighted round robin, laid out once; see balancer.h.
 *
 * nginx's rule: each step every endpoint gains its weight, the one that has most gets the turn and pays the sum of all
 * weights. Those of one weight gain alike, so among them the turn goes round in their order, and only the first of each
 * weight is to be compared: 256 at most, however many endpoints there are.
 */
#include "service/balancer_internal.h"

#include <errno.h>
#include <stdlib.h>

/* All endpoints of one weight. */
struct balancer_cycle_class {
    unsigned weight;
    unsigned n;
    unsigned head;  /* whose turn it is: an index in `places` */
    int64_t credit; /* of the head */
    uint16_t *places;
};

struct balancer_cycle {
    unsigned n_classes;
    struct balancer_cycle_class classes[BALANCER_MAX_WEIGHT];
    uint16_t places[]; /* by class, then in order */
};

/* Sort the places by weight and count how many there are of each. */
static void balancer_cycle_classify(struct balancer_cycle *c, const struct balancer *b,
                                    const struct balancer_pool *pool)
{
    unsigned count[BALANCER_MAX_WEIGHT + 1] = {0};
    struct balancer_cycle_class *of_weight[BALANCER_MAX_WEIGHT + 1];
    unsigned divisor = balancer_divisor(b, pool);
    uint16_t *at = c->places;

    for (unsigned i = 0; i < pool->n; i++)
        count[b->list[pool->from + i]->weight]++;
    for (unsigned weight = 1; weight <= BALANCER_MAX_WEIGHT; weight++) {
        if (count[weight] == 0)
            continue;
        of_weight[weight] = &c->classes[c->n_classes++];
        *of_weight[weight] =
            (struct balancer_cycle_class){.weight = weight / divisor, .places = at};
        at += count[weight];
    }
    for (unsigned place = pool->from; place < pool->from + pool->n; place++) {
        struct balancer_cycle_class *class = of_weight[b->list[place]->weight];

        class->places[class->n++] = (uint16_t)place;
    }
}

/* One step: whose turn it is. Of equals it is the first in the list. */
static uint16_t balancer_cycle_step(struct balancer_cycle *c, uint32_t total)
{
    struct balancer_cycle_class *best = &c->classes[0];
    uint16_t place;

    for (unsigned i = 0; i < c->n_classes; i++) {
        struct balancer_cycle_class *class = &c->classes[i];

        class->credit += class->weight;
        if (class->credit > best->credit || (class->credit == best->credit &&
                                             class->places[class->head] < best->places[best->head]))
            best = class;
    }
    place = best->places[best->head++];
    if (best->head ==
        best->n) { /* the next one of this class has paid already, as all others of it have */
        best->head = 0;
        best->credit -= total;
    }
    return place;
}

int balancer_cycle_build(const struct balancer *b, struct balancer_pool *pool)
{
    struct balancer_cycle *c = calloc(1, sizeof(*c) + pool->n * sizeof(c->places[0]));

    if (!c)
        return -ENOMEM;
    balancer_cycle_classify(c, b, pool);
    for (unsigned i = 0; i < c->n_classes; i++)
        pool->table_len += c->classes[i].weight * c->classes[i].n;
    pool->table = malloc(pool->table_len * sizeof(*pool->table));
    for (uint32_t step = 0; pool->table && step < pool->table_len; step++)
        pool->table[step] = balancer_cycle_step(c, pool->table_len);
    free(c);
    return pool->table ? 0 : -ENOMEM;
}

/*
 * The turn of one that is not taken is over, and the next turn is drawn from all: so those that are left share it by their
 * weights. Where many turns in a row are lost so few are fit that the one with fewest sessions will do.
 */
bool balancer_cycle_choose(struct balancer_attempt *a)
{
    const struct balancer_pool *pool = a->pool;

    for (int draw = 0; draw < BALANCER_DRAWS; draw++)
        if (balancer_offer(a, pool->table[balancer_turn(a->b) % pool->table_len]))
            return true;
    return balancer_least_choose(a);
}
