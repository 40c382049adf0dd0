/* sessions/session_idlest: the idlest sessions, in order, whatever is removed during the search. */
#include "service/session.h"
#include "sessions/session_idlest.h"
#include "support/suite.h"

#define SESSIONS (2 * SESSION_SET_STEP)

static struct session_set set;
static struct session_idlest search;
static struct session sessions[SESSIONS];

/* The tests' own: sessions have no channels here. */
static int64_t at_ns(const struct session *s)
{
    return s->began_at_ns;
}

static void setup(void)
{
    session_set_init(&set);
    session_idlest_init(&search);
}

static void add(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        sessions[i].began_at_ns = (int64_t)(i * 37 % n); /* each number once */
        session_set_add(&set, &sessions[i]);
    }
}

static void search_all(void)
{
    while (!session_idlest_step(&search))
        continue;
}

static void expect(int64_t first_ns, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct session *s = session_idlest_take(&search);

        ck_assert_ptr_nonnull(s);
        ck_assert_int_eq(s->began_at_ns, first_ns + (int64_t)i);
    }
    ck_assert_ptr_null(session_idlest_take(&search));
    session_idlest_end(&search);
}

GROUP(session_idlest, setup, NULL);

TEST(session_idlest, idlest_of_many_sessions_are_found_in_order)
{
    add(SESSIONS - 1);
    session_idlest_begin(&search, &set, at_ns);
    search_all();
    expect(0, SESSION_IDLEST_MAX);
}

TEST(session_idlest, fewer_sessions_than_the_maximum_are_all_found)
{
    add(5);
    sessions[0].began_at_ns = CLOCK_NEVER; /* left out */
    session_idlest_begin(&search, &set, at_ns);
    search_all();
    expect(1, 4);
}

TEST(session_idlest, a_step_is_bounded)
{
    add(SESSIONS - 1);
    session_idlest_begin(&search, &set, at_ns);
    ck_assert(!session_idlest_step(&search));
    ck_assert_uint_lt(session_set_next(&search.walk)->order, SESSION_SET_STEP + 2);
}

TEST(session_idlest, sessions_that_are_removed_or_end_meanwhile_are_left_out)
{
    add(SESSIONS - 1);
    session_idlest_begin(&search, &set, at_ns);
    search_all();
    session_set_remove(&set, &sessions[0]); /* the idlest */
    for (unsigned i = 0; i < SESSIONS; i++)
        if (sessions[i].began_at_ns == 1)
            sessions[i].phase = SESSION_PHASE_ENDING;
    expect(2, SESSION_IDLEST_MAX - 2);
    session_set_remove(&set, &sessions[1]);
}
