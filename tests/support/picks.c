#include "support/picks.h"

#include <check.h>
#include <errno.h>

#include "base/hash.h"
#include "support/endpoints.h"

struct picks picks;

void picks_teardown(void)
{
    balancer_destroy(picks.b);
    endpoints_close(&picks.es);
}

void picks_count(unsigned *picked, unsigned sessions)
{
    for (unsigned i = 0; i < sessions; i++) {
        int at = endpoints_touch(&picks.es, picks.b, hash_mix(i));

        ck_assert_int_ge(at, 0);
        picked[at]++;
    }
}

void picks_expect_walk(unsigned n)
{
    struct balancer_pick_state pick;

    balancer_begin(&pick, 1);
    for (unsigned i = 0; i < n; i++) {
        int at = endpoints_next(&picks.es, picks.b, &pick);

        ck_assert_int_ge(at, 0);
        ck_assert(!(endpoint_load(&picks.es.all[at]) & ENDPOINT_ABSENT));
        endpoint_leave(&picks.es.all[at]);
    }
    ck_assert_int_eq(endpoints_next(&picks.es, picks.b, &pick), -ENOENT);
}
