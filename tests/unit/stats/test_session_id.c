/* stats/session_id: no two are the same, on one thread or on several. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "stats/session_id.h"
#include "support/suite.h"

#define THREADS 4
#define IDS     10000

static struct session_id ids[THREADS * IDS];

static void *make_many(void *arg)
{
    struct session_id *list = arg;

    for (unsigned i = 0; i < IDS; i++)
        session_id_make(&list[i]);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct session_id));
}

GROUP(IDs, NULL, NULL);

TEST(IDs, ids_of_four_threads_are_distinct_and_not_zero)
{
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make_many, &ids[i * IDS]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    qsort(ids, ARRAY_LEN(ids), sizeof(ids[0]), compare);
    for (unsigned i = 0; i < ARRAY_LEN(ids); i++) {
        ck_assert(ids[i].high != 0);
        ck_assert(i == 0 || compare(&ids[i - 1], &ids[i]) != 0);
    }
}

TEST(IDs, id_is_written_as_32_digits)
{
    struct session_id id = {UINT64_C(0x0123456789abcdef), 0xf};
    char text[SESSION_ID_TEXT_BYTES];

    ck_assert_str_eq(session_id_format(text, &id), "0123456789abcdef000000000000000f");
}
