/* base/arena: many pieces, one end. */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "support/suite.h"

static struct arena *arena;

static void setup(void)
{
    ck_assert_int_eq(arena_create(&arena), 0);
}

static void teardown(void)
{
    arena_release(arena);
}

GROUP(pieces, setup, teardown);

TEST(pieces, a_piece_is_zeroed_and_aligned)
{
    for (size_t n = 0; n < 100; n++) {
        const char *piece = arena_alloc(arena, n, 3);

        ck_assert_ptr_nonnull(piece);
        ck_assert_uint_eq((uintptr_t)piece % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < 3 * n; i++)
            ck_assert_int_eq(piece[i], 0);
    }
}

TEST(pieces, a_piece_too_large_to_be_counted_is_refused)
{
    ck_assert_ptr_null(arena_alloc(arena, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(arena_alloc(arena, SIZE_MAX, 1));
    ck_assert_ptr_null(arena_text(arena, "", SIZE_MAX));
}

TEST(pieces, a_text_is_copied_with_its_end)
{
    ck_assert_str_eq(arena_text(arena, "abcdef", 3), "abc");
    ck_assert_str_eq(arena_text(arena, "", 0), "");
}

TEST(pieces, arena_lives_until_its_last_reference_is_released)
{
    char *text = arena_text(arena, "kept", 4);

    ck_assert_ptr_eq(arena_hold(arena), arena);
    arena_release(arena);
    ck_assert_str_eq(text, "kept"); /* under AddressSanitizer, a use after free */
    text[0] = 'K';
}

TEST(pieces, null_arena_can_be_held_and_released)
{
    ck_assert_ptr_null(arena_hold(NULL));
    arena_release(NULL);
}

static void count_release(void *object)
{
    ++*(int *)object;
}

TEST(pieces, an_owned_object_is_released_with_the_last_reference)
{
    int a = 0, b = 0;

    ck_assert_int_eq(arena_own(arena, &a, count_release), 0);
    ck_assert_int_eq(arena_own(arena, &b, count_release), 0);
    (void)arena_hold(arena);
    arena_release(arena);
    ck_assert_int_eq(a + b, 0);
    arena_release(arena);
    ck_assert(a == 1 && b == 1);
    ck_assert_int_eq(arena_create(&arena), 0); /* for the teardown */
}
