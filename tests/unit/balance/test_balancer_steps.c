/* balance/balancer: how many keys move when a group has one endpoint more, or one less. */
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "support/endpoints.h"
#include "support/sanitized.h"
#include "support/suite.h"

#define MAX_KEYS 200000

static const enum balancer_kind kinds[] = {BALANCER_SOURCE_HASH, BALANCER_MAGLEV};

/*
 * The weights that the endpoints have in turn, and the steps: from that many endpoints to one more.
 */
static const struct {
    unsigned weights[4];
    unsigned from, to;
} groups[] = {{{1, 1, 1, 1}, 1, 200},
              {{10, 10, 10, 10}, 1, 20},
              {{100, 100, 100, 100}, 1, 20},
              {{256, 256, 256, 256}, 1, 20},
              {{1, 100, 10, 256}, 1, 200},
              {{1, 1, 1, 1}, 500, 500},
              {{100, 100, 100, 100}, 1000, 1000},
              {{1, 256, 100, 10}, 1000, 1000}};

static struct endpoints es;
static uint16_t *before, *after;

static void setup(void)
{
    before = calloc(MAX_KEYS, sizeof(*before));
    after = calloc(MAX_KEYS, sizeof(*after));
}

static void teardown(void)
{
    free(before);
    free(after);
    endpoints_close(&es);
}

/* Whose each of ${keys} is with the first ${n} endpoints. */
static void look_up(uint16_t *owners, enum balancer_kind kind, unsigned n, unsigned keys)
{
    struct balancer *b;

    es.n = n;
    b = endpoints_balancer(&es, kind);
    for (unsigned i = 0; i < keys; i++)
        owners[i] = (uint16_t)endpoints_touch(&es, b, hash_mix(i));
    balancer_destroy(b);
}

/*
 * From ${n} to one more: only keys that come to it have moved, and no more than 1.2 times its share
 * of ${keys}. Of a share of few keys chance alone makes more than that: five times the standard
 * deviation.
 */
static void expect_step(unsigned n, unsigned keys)
{
    unsigned moved = 0, elsewhere = 0, weight = 0;
    double share;

    for (unsigned i = 0; i <= n; i++)
        weight += es.all[i].weight;
    share = (double)keys * es.all[n].weight / weight;
    for (unsigned i = 0; i < keys; i++) {
        moved += before[i] != after[i];
        elsewhere += before[i] != after[i] && after[i] != n;
    }
    ck_assert_msg(elsewhere == 0, "%u endpoints: %u keys moved between others", n, elsewhere);
    ck_assert_msg(moved <= fmax(1.2 * share, share + 5 * sqrt(share)),
                  "%u endpoints: %u keys of %u moved, and not %g", n, moved, keys, share);
}

/* Every step to 60, then some. */
static unsigned next_step(unsigned n)
{
    return n < 60 ? n + 1 : n + 20;
}

GROUP_WITHIN(steps, setup, teardown, 5 * SUITE_CASE_SECONDS);

TEST_EACH(steps, added_endpoint_moves_at_most_1_2_times_its_share_of_keys,
          IF_SANITIZED(2, 2 * ARRAY_LEN(groups)))
{
    enum balancer_kind kind = kinds[_i % 2];
    unsigned group = (unsigned)_i / 2, last = IF_SANITIZED(10, groups[group].to);

    endpoints_open(&es, groups[group].to + 1);
    for (unsigned i = 0; i < es.n; i++)
        es.all[i].weight = groups[group].weights[i % 4];
    for (unsigned n = groups[group].from; n <= last; n = next_step(n)) {
        unsigned keys = n <= 60 ? 20000 : MAX_KEYS;

        look_up(before, kind, n, keys);
        look_up(after, kind, n + 1, keys);
        expect_step(n, keys);
    }
}
