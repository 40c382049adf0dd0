/* base/ref: which release is the last, and what its thread sees. */
#include <pthread.h>

#include "base/ref.h"
#include "support/suite.h"

#define HOLDERS 4
#define ROUNDS  500

static struct ref ref;

static void setup(void)
{
    ref_init(&ref);
}

GROUP(ref, setup, NULL);

TEST(ref, only_the_last_release_says_so)
{
    ref_hold(&ref);
    ref_hold(&ref);
    ck_assert_uint_eq(ref_count(&ref), 3);
    ck_assert(!ref_release(&ref));
    ck_assert(!ref_release(&ref));
    ck_assert_uint_eq(ref_count(&ref), 1);
    ck_assert(ref_release(&ref));
}

TEST_ABORTS(ref, a_release_without_a_reference_is_a_bug)
{
    ck_assert(ref_release(&ref));
    ck_assert(!ref_release(&ref));
}

struct shared {
    struct ref references;
    unsigned written[HOLDERS];
    unsigned freed; /* not atomic: see note: references */
};

struct holder {
    pthread_t thread;
    struct shared *shared;
    unsigned i;
};

static void *write_and_release(void *arg)
{
    struct holder *h = arg;

    h->shared->written[h->i] = 1;
    if (ref_release(&h->shared->references))
        for (unsigned i = 0; i < HOLDERS; i++)
            h->shared->freed += h->shared->written[i];
    return NULL;
}

TEST(ref, the_last_of_several_threads_sees_what_the_others_wrote)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct shared shared = {.freed = 0};
        struct holder holders[HOLDERS];

        ref_init(&shared.references);
        for (unsigned i = 0; i < HOLDERS; i++) {
            if (i > 0)
                ref_hold(&shared.references);
            holders[i] = (struct holder){.shared = &shared, .i = i};
        }
        for (unsigned i = 0; i < HOLDERS; i++)
            pthread_create(&holders[i].thread, NULL, write_and_release, &holders[i]);
        for (unsigned i = 0; i < HOLDERS; i++)
            pthread_join(holders[i].thread, NULL);
        ck_assert_uint_eq(shared.freed, HOLDERS);
    }
}
