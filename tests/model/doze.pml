/*
 * model/doze: loops, and the watchdog that dozes while they sleep (src/engine: watchdog.c, turn_poll_begin() in
 * turn_poll.c, wakeup_end_sleep() in wakeup.c).
 *
 * What is shown, for every interleaving:
 *
 *   - No turn that hangs is missed, and no task of a loop that does not wake up: whenever nothing can move any more, the
 *     watchdog has seen them. It may doze for ever only if all loops sleep and no task waits.
 *   - A doze costs the loops and producers one system call at most.
 *
 * Memory is sequentially consistent in Spin, as the code asks for at four accesses: a loop stores that it is in a turn
 * (a producer pushes), and then loads `dozes`; the watchdog stores `dozes`, and then loads turns and queues. That the
 * watchdog is awake may be seen at any time until it publishes its next doze.
 *
 * run.sh also checks this file with one thing wrong at a time, and each of these mutants must be refuted.
 */
bool dozes;
bool awake_stored; /* wakeup_done() is on its way to the others */
byte fd;           /* the eventfd's count */
bool turning[LOOPS];
bool queued;       /* a task of the loop that does not wake up */
bool feeds = true; /* systemd's watchdog: it wakes the main thread once */

/* Not in the code. */
bool paid = true;  /* the doze published last has had its system call */
bool hangs[LOOPS]; /* its turn does not end */
bool seen;         /* the watchdog is awake, and has seen one that hangs, or the task */

#if LOOPS == 2
#define ANY(of) (of[0] || of[1])
#else
#define ANY(of) (of[0] || of[1] || of[2])
#endif
#define BAD (ANY(hangs) || queued)

active proctype judge()
{
    timeout -> assert(seen || !BAD)
}

/* wakeup_send() to the watchdog: the exchange, and the system call of the one who ended the doze with it. */
inline ring()
{
    if
    :: dozes ->
       d_step {
#ifdef NO_EXCHANGE /* but a store: whoever has seen the doze pays */
           mine = true;
#else
           mine = dozes;
#endif
           dozes = false;
           awake_stored = false;
           assert(!mine || !paid);
           paid = paid || mine
       }
       if
       :: d_step { mine -> fd++; mine = false }
       :: !mine
       fi
    :: !dozes
    fi
}

proctype loop(byte me)
{
    byte n;
    bool mine;

    do
    :: n < TURNS ->
       n++;
#ifdef LOOK_FIRST /* and store then */
       ring();
       turning[me] = true;
#else
       turning[me] = true;
       ring();
#endif
       if
       :: turning[me] = false
       :: d_step { true -> hangs[me] = true }
          break
       fi
    :: n == TURNS -> break
    od
}

/* A thread that is no loop may have a task for a loop whose wake-up is lost. */
proctype producer()
{
    bool mine;

    if
    :: queued = true;
#ifndef NO_RING
       ring()
#endif
    :: true
    fi
}

/* When the others see what wakeup_done() has stored. */
proctype memory()
{
    do
    :: d_step { awake_stored -> awake_stored = false; dozes = false }
    od
}

/* ---- the main thread ---- */

inline look()
{
    i = 0;
    busy = false;
    do
    :: d_step { i < LOOPS -> busy = busy || turning[i]; i++ }
    :: i == LOOPS -> break
    od;
#ifdef ONLY_TURNS
    skip
#else
    busy = busy || queued
#endif
}

inline prepare()
{
    d_step { awake_stored = false; dozes = true; paid = false }
}

proctype watchdog()
{
    byte i;
    bool busy;

    do
    /* a check; what it has seen it looks at until that is over */
    :: d_step { BAD -> seen = true }
       break
    /* a doze */
    :: true ->
#ifdef LOOPS_FIRST /* and the doze then */
       look();
       fd = 0;
       prepare();
#else
#ifdef CLEAR_LATE
       prepare();
       fd = 0;
#else
       fd = 0;
       prepare();
#endif
       look();
#endif
       if
       :: busy
       :: !busy ->
          if
          :: fd > 0
          :: d_step { feeds -> feeds = false }
          fi
       fi;
       awake_stored = dozes
    od
}

init
{
    byte p;

    atomic {
        for (p : 0 .. LOOPS - 1) {
            run loop(p)
        }
        run producer();
        run memory();
        run watchdog()
    }
}
