/*
 * model/wakeup: producers submit tasks to a loop that goes to sleep (src/engine: wakeup.c, queue.c, loop_submit.c,
 * turn_poll.c).
 *
 * What is shown, for every interleaving:
 *
 *   - No task waits for a sleeping loop: whenever nothing can move any more, every task that is not lazy was run, and
 *     the stop was noticed. The formula says it of runs without an end, too: again and again there is an instant at
 *     which nothing waits.
 *   - A sleep costs one system call at most.
 *   - Every task is run once, those of one producer in their order, and no producer writes to one that was popped.
 *
 * Memory is sequentially consistent in Spin. The code asks for that at four accesses: a producer swings `newest` and
 * then loads `sleeps`; the loop stores `sleeps` and then loads `newest`. What the code asks less for has its freedom
 * here: that the loop is awake may be seen at any time until it publishes its next sleep.
 *
 * run.sh also checks this file with one thing wrong at a time, and each of these mutants must be refuted. LOOK_FIRST
 * and WAKE_FIRST are at the same time what a machine does to accesses that are not sequentially consistent.
 */
#include "queue.pml"

/* Until when the loop sleeps. */
#define AWAKE 0
#define SOON  1 /* its timer */
#define LATER 2 /* a deadline that a producer brings */
#define NEVER 3

byte sleeps = AWAKE;
bool awake_stored; /* wakeup_done() is on its way to the others */
byte fd;           /* the eventfd's count */
bool stopping, stop_noticed;
#ifdef PLAIN /* the loop runs already, and all tasks are eager: less to look at, for more producers */
bool created = true, started = true;
#else
bool created, started;
#endif
#ifdef TIMER
bool armed = true; /* the loop has one timer, which fires once */
#else
bool armed = false;
#endif

/* Not in the code. */
bool paid = true;     /* the sleep published last has had its system call */
byte due[PRODUCERS];  /* how many of a producer's tasks must be run ... */
byte done[PRODUCERS]; /* ... and how many were */

#if PRODUCERS == 2
#define ALL_DONE (done[0] >= due[0] && done[1] >= due[1])
#else
#define ALL_DONE (done[0] >= due[0] && done[1] >= due[1] && done[2] >= due[2])
#endif
#define NOTHING_WAITS (ALL_DONE && (!stopping || stop_noticed))

#ifdef FORMULA
ltl no_task_waits_for_ever { [] <> NOTHING_WAITS }
#else
active proctype judge()
{
    timeout -> assert(NOTHING_WAITS)
}
#endif

/* ---- any thread ---- */

/* wakeup_end_sleep(): the exchange, and the system call of the one who ended the sleep with it. */
inline wakeup_end_sleep()
{
    d_step {
#ifdef NO_EXCHANGE /* but a store: whoever has seen the sleep pays */
        mine = true;
#else
        mine = sleeps != AWAKE;
#endif
        sleeps = AWAKE;
        awake_stored = false;
        assert(!mine || !paid);
        paid = paid || mine
    }
    if
    :: d_step { mine -> fd++; mine = false }
    :: !mine
    fi
}

#ifdef LAZY_START /* the task that starts the loop is no exception */
#define MAY_BE_LAZY true
#else
#define MAY_BE_LAZY (!is_first)
#endif

/* The end of a submit: look whether the loop sleeps. What kind of submit it is matters only here. */
inline look_at_sleep()
{
    if
    :: d_step { true -> due[me] = k; wake = sleeps > AWAKE }                   /* loop_submit() */
#ifndef PLAIN
    :: d_step { true -> due[me] = k; wake = sleeps > LATER }                   /* _after() */
    :: d_step { MAY_BE_LAZY -> due[me] = (is_first -> k : due[me]) }           /* _lazy() */
#endif
    fi
}

/* The thread exists before the state says so. The lock is left out: what it guards may be done twice here. */
inline loop_start()
{
    created = true;
    started = true
}

inline push()
{
    atomic { MAY_COME(me) && !inside[t] -> came[me] = true; queue_look(before, t) }
    queue_swing(before, t)
}

proctype producer(byte me)
{
    byte k, t, before;
    bool is_first, wake, mine;

    do
    :: d_step { k < TASKS_EACH -> t = TASK(me, k); k++; is_first = !started }
       if
       :: is_first -> loop_start()
       :: !is_first
       fi;
#ifdef WAKE_FIRST /* and push then */
       d_step { due[me] = k; wake = sleeps > AWAKE }
       if
       :: wake -> wakeup_end_sleep()
       :: !wake
       fi;
       push();
#else
       push();
       look_at_sleep();
       if
       :: wake -> wakeup_end_sleep()
       :: !wake
       fi;
#endif
       /* Values of no use would only tell states apart. */
       atomic { t = 0; wake = false; is_first = false }
    :: k == TASKS_EACH && t == 0 -> break
    od
}

/* loop_stop(); a loop without a thread it would end by itself. */
proctype stopper()
{
    bool mine;

    d_step { started -> stopping = true }
    if
    :: sleeps != AWAKE -> wakeup_end_sleep()
    :: else
    fi
}

/* When the others see what wakeup_done() has stored. */
proctype memory()
{
    do
    :: d_step { awake_stored -> awake_stored = false; sleeps = AWAKE }
    od
}

/* ---- the loop ---- */

inline wakeup_prepare()
{
    d_step {
        awake_stored = false;
#ifdef STALE_DEADLINE /* the timer has fired, and yet */
        sleeps = SOON;
#else
        sleeps = (armed -> SOON : NEVER);
#endif
        paid = false
    }
}

/* To store what the others see already changes nothing. */
#define WAKEUP_DONE awake_stored = sleeps != AWAKE

#ifdef TAKEN_IS_ALL /* what was not taken is not there */
#define NO_TASKS (first == NOBODY)
#else
#define NO_TASKS QUEUE_EMPTY
#endif

#ifdef STOP_IS_NO_NEWS
#define STOP_IS_NEWS false
#else
#define STOP_IS_NEWS (stopping && !stop_noticed)
#endif

/* on_ready(). That turn_poll_sleep() says once more that the loop is awake changes nothing. */
#define READY(fired)                 \
    woken = fd > 0;                  \
    if                               \
    :: woken || fired -> WAKEUP_DONE \
    :: else                          \
    fi;                              \
    armed = armed && !fired

/* The timer may fire at any poll; without a wake-up a poll that blocks ends when it does. */
inline poll_at_once()
{
    if
    :: d_step { true -> READY(false) }
    :: d_step { armed -> READY(true) }
    fi
}

inline poll_blocking()
{
#ifdef DONE_EARLY /* the loop is awake, says the loop, and sleeps */
    WAKEUP_DONE;
#endif
#ifdef CLEAR_LATE /* not when the poll has ended, but before the next */
    fd = 0;
#endif
    if
    :: d_step { fd > 0 -> READY(false) }
    :: d_step { armed -> READY(true) }
    fi
}

/* turn_poll_sleep() */
inline sleep()
{
#ifdef LOOK_FIRST /* and publish the sleep then */
    if
    :: !NO_TASKS || STOP_IS_NEWS -> poll_at_once()
    :: else -> wakeup_prepare(); poll_blocking()
    fi
#else
    wakeup_prepare();
    if
    :: atomic { !NO_TASKS -> WAKEUP_DONE }
       poll_at_once()
    :: else ->
       if
       :: atomic { STOP_IS_NEWS -> WAKEUP_DONE }
          poll_at_once()
       :: else -> poll_blocking()
       fi
    fi
#endif
}

/* In order, and each once. What was due before is of no use any more. */
#define RUN(t)                                                                          \
    assert(done[OWNER(t)] == NUMBER(t));                                                \
    done[OWNER(t)]++;                                                                   \
    due[OWNER(t)] = (due[OWNER(t)] < done[OWNER(t)] -> done[OWNER(t)] : due[OWNER(t)]); \
    t = NOBODY

/* Steps 1 and 2, 3 to 5 (one task at least if there is one, and as many more as the budget allows), and 7. */
inline turn()
{
    if
    :: !NO_TASKS -> poll_at_once()
    :: else -> sleep()
    fi;
    if
    :: d_step { woken -> fd = 0; woken = false } /* on_wakeup() */
    :: !woken
    fi;
    queue_take();
    do
    :: queue_pop(t);
       if
       :: d_step { t != NOBODY -> RUN(t) }
       :: d_step { t != NOBODY -> RUN(t); stop_noticed = stopping }
          break
       :: d_step { t == NOBODY -> stop_noticed = stopping }
          break
       :: t == NOBODY && newest != NOBODY -> queue_take() /* what came meanwhile */
       fi
    od
}

proctype loop()
{
    QUEUE_CONSUMER;
    byte t = NOBODY;
    bool woken;

    created;
    do
    :: turn()
    od
}

init
{
    byte p;

    atomic {
        for (p : 0 .. PRODUCERS - 1) {
            run producer(p)
        }
#ifdef STOP
        run stopper();
#endif
        run memory();
        run loop()
    }
}
