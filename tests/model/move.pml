/*
 * model/move: a session moves between two loops while a visit looks for it on both (src/engine: move_gate.c, visit.c;
 * src/sessions/worker.c, worker_move()).
 *
 * What is shown, for every interleaving: an exact visit meets the session once, and afterwards one loop has it.
 *
 * The control queue of a loop is in order. A loop moves the session whenever it likes, MOVES times in all; the visit
 * holds moves off, waits for those under way, submits a step to each loop, and allows moves again when both are done.
 *
 * run.sh also checks this file with one thing wrong at a time, and each of these mutants must be refuted.
 */
#ifndef MOVES
#define MOVES 3
#endif

#define ARRIVES 1
#define VISITED 2

chan queue[2] = [4] of { byte };

/* One word in the code. */
byte visits;
byte moves;

/* Not in the code. */
bool has[2];
byte moves_left = MOVES;
byte met;
byte visited;
bool ended;

proctype loop(byte i)
{
    byte task;

    do
    :: atomic { queue[i]?task };
       if
       :: task == ARRIVES -> assert(!has[0] && !has[1]); has[i] = true
       :: task == VISITED ->
          if
          :: has[i] -> met++
          :: else
          fi;
          visited++
       fi
    :: !ended && has[i] && moves_left > 0 ->
       if
       ::
          atomic {
#ifndef NO_GATE
              visits == 0;
#endif
              !ended;
              moves++
          };
          moves_left--;
          has[i] = false;
#ifdef LEAVE_FIRST
          moves--;
          queue[1 - i]!ARRIVES
#else
          queue[1 - i]!ARRIVES;
          moves--
#endif
       :: visits > 0 || ended -> skip /* refused */
       fi
    :: ended && empty(queue[i]) -> break
    od
}

proctype visitor()
{
    visits++;
#ifndef NO_WAIT
    moves == 0;
#endif
    queue[0]!VISITED;
#ifdef RELEASE_EARLY
    visits--;
    queue[1]!VISITED;
    visited == 2;
#else
    queue[1]!VISITED;
    visited == 2;
    visits--;
#endif
    assert(met == 1);
    atomic { moves == 0; ended = true }
}

init
{
    atomic {
        has[0] = true;
        run loop(0);
        run loop(1);
        run visitor()
    }
    _nr_pr == 1;
    assert(has[0] != has[1])
}
