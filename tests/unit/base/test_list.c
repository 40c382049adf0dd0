/* base/list: what the list promises. */
#include <check.h>
#include <stdlib.h>

#include "base/list.h"

struct item {
    int number;
    struct list link;
};

static struct list items;
static struct item one = {.number = 1}, two = {.number = 2}, three = {.number = 3};

static void append_three(void)
{
    list_init(&items);
    list_append(&items, &one.link);
    list_append(&items, &two.link);
    list_append(&items, &three.link);
}

/* The numbers on the list read as decimal digits, and backwards the same. */
static int digits(void)
{
    int forward = 0, backward = 0, unit = 1;

    list_for_each(node, &items) forward = forward * 10 + LIST_ENTRY(node, struct item, link)->number;
    for (struct list *node = items.prev; node != &items; node = node->prev)
        backward = backward * 10 + LIST_ENTRY(node, struct item, link)->number;
    for (int rest = backward; rest > 0; rest /= 10) {
        ck_assert_int_eq(rest % 10, forward / unit % 10 == 0 ? -1 : rest % 10);
        unit *= 10;
    }
    return forward;
}

START_TEST(a_new_list_is_empty)
{
    list_init(&items);
    ck_assert(list_empty(&items));
}
END_TEST

int main(void)
{
    return EXIT_SUCCESS;
}
