/* ctl/ctl_top_layout: each section gets something, none more than it wants. */
#include "base/must.h"
#include "ctl/ctl_top_layout.h"
#include "support/suite.h"

#define N 4

static struct ctl_top_layout_section sections[N];

/* Lay out ${lines}; returns whether there are gaps. */
static bool lay_out(unsigned lines, const unsigned wanted[N])
{
    for (unsigned i = 0; i < N; i++)
        sections[i] = (struct ctl_top_layout_section){.wanted = wanted[i], .rows = 99};
    return ctl_top_layout(sections, N, lines);
}

static void assert_rows(unsigned first, unsigned second, unsigned third, unsigned fourth)
{
    ck_assert_uint_eq(sections[0].rows, first);
    ck_assert_uint_eq(sections[1].rows, second);
    ck_assert_uint_eq(sections[2].rows, third);
    ck_assert_uint_eq(sections[3].rows, fourth);
}

GROUP(layout, NULL, NULL);

TEST(layout, large_screen_shows_all_sections_with_gaps)
{
    ck_assert(lay_out(40, (unsigned[N]){5, 2, 3, 6}));
    assert_rows(5, 2, 3, 6);
}

TEST(layout, rows_are_shared_equally)
{
    ck_assert(lay_out(23, (unsigned[N]){100, 2, 100, 100}));
    assert_rows(5, 2, 5, 4);
}

TEST(layout, small_screen_has_no_gaps_and_a_row_of_each_section)
{
    ck_assert(!lay_out(9, (unsigned[N]){10, 10, 10, 10}));
    assert_rows(2, 1, 1, 1);
}

TEST(layout, first_sections_are_hidden_first)
{
    lay_out(5, (unsigned[N]){10, 10, 10, 10});
    ck_assert(!sections[0].is_shown && !sections[1].is_shown);
    ck_assert(sections[2].is_shown && sections[3].is_shown);
    assert_rows(0, 0, 2, 1);
}

TEST(layout, screen_of_one_line_shows_nothing)
{
    for (unsigned lines = 0; lines < 2; lines++) {
        ck_assert(!lay_out(lines, (unsigned[N]){1, 1, 1, 1}));
        for (unsigned i = 0; i < N; i++)
            ck_assert(!sections[i].is_shown);
    }
}

TEST_RANGE(layout, shown_sections_never_exceed_the_screen, 0, 200)
{
    unsigned lines = 0;

    if (lay_out((unsigned)_i, (unsigned[N]){0, 30, 7, 1000}))
        lines += N - 1;
    for (unsigned i = 0; i < N; i++)
        lines += sections[i].is_shown ? 1 + sections[i].rows : 0;
    ck_assert_uint_le(lines, (unsigned)_i);
}
