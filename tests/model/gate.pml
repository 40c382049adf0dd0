/*
 * model/gate: producers submit tasks while a loop ends (src/engine: gate.c, queue.c, loop_submit_quietly() and
 * loop_withdraw() in loop_submit.c, loop_refuse_and_drop() in loop.c).
 *
 * What is shown, for every interleaving:
 *
 *   - Every task is run, dropped or refused, and only one of these; when nothing can move any more none is left over.
 *   - Nobody pushes to a loop that has ended, and no more than MAX tasks are accepted and unfinished at a time.
 *   - The formula: once the gate is closed, the loop comes to its end. (Producers are finite here. Some that came again
 *     and again for ever, to be refused, could hold it up.)
 *
 * A thread that ends a loop without one does what a loop does that runs no turn before it closes the gate.
 *
 * run.sh also checks this file with one thing wrong at a time, and each of these mutants must be refuted.
 */
#include "queue.pml"

#define MAX 2

/* One word in the code, read and written as one here. */
byte count;
bool closed;

/* Not in the code. */
byte accepted;                           /* and neither run nor dropped yet */
byte unsettled = PRODUCERS * TASKS_EACH; /* whose fate is still open */
bool settled[NODES];
bool ended;

#define SETTLE(t)        \
    assert(!settled[t]); \
    settled[t] = true;   \
    unsettled--

#ifdef FORMULA
ltl the_drain_ends { [] (closed -> <> ended) }
#else
active proctype judge()
{
    timeout -> assert(ended && unsettled == 0 && count == 0 && QUEUE_EMPTY)
}
#endif

/* ---- any thread ---- */

inline gate_enter()
{
#ifdef LOOK_FIRST /* and count then */
    refused = closed || count >= MAX;
    count++
#else
    d_step { refused = closed || count >= MAX; count++ }
#endif
}

inline gate_leave(places)
{
    d_step { assert(count >= places); count = count - places }
}

inline accept()
{
    d_step { assert(!ended); accepted++; assert(accepted <= MAX) }
    queue_look(before, t);
    queue_swing(before, t)
}

/* A task, or a timer that is withdrawn: that pushes nothing if the timer has not arrived yet. */
inline submit()
{
    gate_enter();
    if
    :: !refused -> accept()
#ifdef PRODUCER_LEAVES /* so that the count is of pushes under way */
       ;
       gate_leave(1)
#endif
    :: d_step { !refused -> SETTLE(t) }
       gate_leave(1)
    :: d_step { refused -> SETTLE(t); refused = false }
#ifndef REFUSED_STAY /* in the count */
       gate_leave(1)
#endif
    fi
}

proctype producer(byte me)
{
    byte k, t, before;
    bool refused;

    do
    :: d_step { k < TASKS_EACH && MAY_COME(me) -> came[me] = true; t = TASK(me, k); k++ }
#ifdef PUSH_FIRST /* and count then */
       accept();
       gate_enter();
#else
       submit();
#endif
       t = 0
    :: k == TASKS_EACH && t == 0 -> break
    od
}

/* ---- the loop ---- */

/* Run or dropped. */
#define END(t)    \
    SETTLE(t);    \
    accepted--;   \
    t = NOBODY

inline leave(places)
{
#ifdef PRODUCER_LEAVES
    skip
#else
    gate_leave(places)
#endif
}

/* Steps 3 to 5 of a turn: some tasks, and then their places are free. */
inline turn()
{
    queue_take();
    do
    :: queue_pop(t);
       if
       :: d_step { t != NOBODY -> END(t); n++ }
       :: d_step { t != NOBODY -> END(t); n++ }
          break
       :: t == NOBODY -> break
       fi
    od;
    leave(n);
    n = 0
}

#ifdef UNTIL_EMPTY /* what counts is what was pushed */
#define SOME_ARE_LEFT (!QUEUE_EMPTY)
#else
#define SOME_ARE_LEFT (count > 0)
#endif

/* loop_drop_queue() */
inline drop_lane()
{
    do
    :: SOME_ARE_LEFT ->
       queue_take();
       queue_pop(t);
       if
       :: d_step { t != NOBODY -> END(t) }
          leave(1)
#ifdef UNTIL_NULL /* what is not there yet will not come */
       :: t == NOBODY -> break
#else
       :: t == NOBODY
#endif
       fi
    :: else -> break
    od
}

proctype loop()
{
    QUEUE_CONSUMER;
    byte t = NOBODY, n;

    do
    :: turn()
    :: break
    od;
#ifdef CLOSE_LATE /* drop first */
    drop_lane();
    closed = true;
#else
    closed = true;
    drop_lane();
#endif
    ended = true
}

init
{
    byte p;

    atomic {
        for (p : 0 .. PRODUCERS - 1) {
            run producer(p)
        }
        run loop()
    }
}
