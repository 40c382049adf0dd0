/* base/heap: items are taken in their order, however they were added. */
#include <stdlib.h>

#include "base/heap.h"
#include "support/suite.h"

#define MOST 200

static void *room[MOST];
static int numbers[MOST];

static bool before(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b;
}

static struct heap heap = {.items = room, .before = before};

GROUP(heap, NULL, NULL);

TEST(heap, empty_heap_has_no_first)
{
    ck_assert_ptr_null(heap_first(&heap));
    ck_assert_ptr_null(heap_take(&heap));
}

TEST_EACH(heap, elements_are_taken_in_order, MOST)
{
    int last = -1;

    srand((unsigned)_i);
    for (int i = 0; i < _i; i++) {
        numbers[i] = rand() % MOST; /* some are equal */
        heap_add(&heap, &numbers[i]);
    }
    for (int i = 0; i < _i; i++) {
        const int *first = heap_first(&heap);

        ck_assert_ptr_eq(heap_take(&heap), first);
        ck_assert_int_ge(*first, last);
        last = *first;
    }
    ck_assert_ptr_null(heap_take(&heap));
}

TEST(heap, elements_may_be_added_between_taking)
{
    int best = -1;

    for (int i = 0; i < MOST; i++) {
        numbers[i] = (i * 37) % MOST;
        heap_add(&heap, &numbers[i]);
        if (i < 10)
            continue;
        best = *(const int *)heap_take(&heap);
        for (size_t k = 0; k < heap.n; k++)
            ck_assert_int_lt(best, *(const int *)room[k]);
    }
    ck_assert_uint_eq(heap.n, 10);
}

static size_t places[MOST];

static void moved(void *item, size_t at)
{
    places[(int *)item - numbers] = at;
}

/* Each item is removed in turn, wherever it is; the others keep their order. */
TEST_EACH(heap, any_element_can_be_removed, MOST)
{
    int last = -1;

    heap.moved = moved;
    srand((unsigned)_i);
    for (int i = 0; i < MOST; i++) {
        numbers[i] = rand() % MOST;
        heap_add(&heap, &numbers[i]);
    }
    for (int i = _i; i < MOST; i += 2) {
        ck_assert_ptr_eq(room[places[i]], &numbers[i]);
        heap_remove(&heap, places[i]);
    }
    for (size_t left = heap.n; left > 0; left--) {
        const int *first = heap_take(&heap);

        ck_assert(first - numbers < _i || (first - numbers - _i) % 2 == 1);
        ck_assert_int_ge(*first, last);
        last = *first;
    }
    ck_assert_ptr_null(heap_take(&heap));
}
