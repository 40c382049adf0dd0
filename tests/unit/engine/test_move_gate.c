/* engine/move_gate: moves and exact visits exclude each other. */
#include <pthread.h>
#include <stdatomic.h>

#include "engine/move_gate.h"
#include "support/suite.h"
#include "support/until.h"

static struct move_gate g;
static atomic_bool is_held;

static void setup(void)
{
    g = (struct move_gate){0};
    is_held = false;
}

GROUP(move_gate, setup, NULL);

TEST(move_gate, several_moves_may_be_under_way)
{
    ck_assert(move_gate_enter(&g));
    ck_assert(move_gate_enter(&g));
    move_gate_leave(&g);
    move_gate_leave(&g);
    move_gate_hold(&g); /* does not wait */
    move_gate_release(&g);
}

TEST(move_gate, a_visit_holds_moves_off_until_the_last_one_has_ended)
{
    move_gate_hold(&g);
    ck_assert(!move_gate_enter(&g));
    move_gate_hold(&g);
    move_gate_release(&g);
    ck_assert(!move_gate_enter(&g));
    move_gate_release(&g);
    ck_assert(move_gate_enter(&g));
    move_gate_leave(&g);
}

static void *hold(void *arg)
{
    (void)arg;
    move_gate_hold(&g);
    atomic_store(&is_held, true);
    return NULL;
}

TEST(move_gate, a_visit_waits_for_the_moves_under_way)
{
    pthread_t thread;

    ck_assert(move_gate_enter(&g));
    ck_assert_int_eq(pthread_create(&thread, NULL, hold, NULL), 0);
    for (bool entered = true; entered;) { /* until the visit holds the rest off */
        entered = move_gate_enter(&g);
        if (entered)
            move_gate_leave(&g);
    }
    PAUSE_MS(20);
    ck_assert(!atomic_load(&is_held));
    move_gate_leave(&g);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(atomic_load(&is_held));
}
