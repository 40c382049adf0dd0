/* base/list: order, removal, and the question a node can answer. */
#include "base/list.h"
#include "support/suite.h"

struct item {
    int number;
    struct list link;
};

static struct list items;
static struct item one = {.number = 1}, two = {.number = 2}, three = {.number = 3};

static void setup(void)
{
    list_init(&items);
    list_append(&items, &one.link);
    list_append(&items, &two.link);
    list_append(&items, &three.link);
}

/* The numbers on the list as decimal digits, read along the next pointers. */
static int read_forward(void)
{
    int digits = 0;

    list_for_each (node, &items)
        digits = digits * 10 + LIST_ENTRY(node, struct item, link)->number;
    return digits;
}

/* The same along the prev pointers. */
static int read_backward(void)
{
    int digits = 0;

    for (struct list *node = items.prev; node != &items; node = node->prev)
        digits = digits * 10 + LIST_ENTRY(node, struct item, link)->number;
    return digits;
}

GROUP(list, setup, NULL);

TEST(list, a_new_list_is_empty)
{
    struct list list;

    list_init(&list);
    ck_assert(list_empty(&list));
}

TEST(list, nodes_keep_the_order_of_appending)
{
    ck_assert(!list_empty(&items));
    ck_assert_int_eq(read_forward(), 123);
    ck_assert_int_eq(read_backward(), 321);
    ck_assert_ptr_eq(LIST_FIRST(&items, struct item, link), &one);
}

TEST(list, appended_list_comes_behind_the_nodes)
{
    struct list others;

    list_init(&others);
    list_append_all(&items, &others);
    ck_assert_int_eq(read_forward(), 123);
    list_remove(&one.link);
    list_append_all(&others, &items);
    ck_assert(list_empty(&items));
    list_append(&items, &one.link);
    list_append_all(&items, &others);
    ck_assert(list_empty(&others));
    ck_assert_int_eq(read_forward(), 123);
    ck_assert_int_eq(read_backward(), 321);
}

TEST(list, a_removed_node_leaves_its_neighbours_linked)
{
    list_remove(&two.link);
    ck_assert_int_eq(read_forward(), 13);
    ck_assert_int_eq(read_backward(), 31);
    list_remove(&one.link);
    list_remove(&three.link);
    ck_assert(list_empty(&items));
}

TEST(list, a_removed_node_is_on_no_list)
{
    ck_assert(!list_empty(&two.link));
    list_remove(&two.link);
    ck_assert(list_empty(&two.link));
}

TEST(list, removing_twice_is_harmless)
{
    list_remove(&two.link);
    list_remove(&two.link);
    ck_assert_int_eq(read_forward(), 13);
    ck_assert_int_eq(read_backward(), 31);
}

TEST(list, a_removed_node_can_be_appended_again)
{
    list_remove(&one.link);
    list_append(&items, &one.link);
    ck_assert_int_eq(read_forward(), 231);
    ck_assert_int_eq(read_backward(), 132);
}

TEST(list, a_safe_walk_may_remove_each_node_it_visits)
{
    int visited = 0;

    list_for_each_safe (node, &items) {
        list_remove(node);
        visited++;
    }
    ck_assert_int_eq(visited, 3);
    ck_assert(list_empty(&items));
}
