/*
 * model/queue: src/engine/queue.c, a step for each access to what threads share. Both models include it.
 *
 * A node is a number. `inside` is not in the code: it says which nodes the queue owns, so that a producer that writes to
 * a node of the queue's is found, and a node that is popped twice.
 */
#define NODES  (PRODUCERS * TASKS_EACH)
#define NOBODY 255

#ifdef AGAIN /* a producer has one task, and submits it again when it has run */
#define TASK(p, k) ((p) * TASKS_EACH)
#define NUMBER(t)  done[OWNER(t)]
#else
#define TASK(p, k) ((p) * TASKS_EACH + (k))
#define NUMBER(t)  ((t) % TASKS_EACH)
#endif
#define OWNER(t) ((t) / TASKS_EACH)

byte newest = NOBODY;
byte first = NOBODY; /* the consumer's */
byte next[NODES] = NOBODY;
bool inside[NODES];

#define QUEUE_EMPTY (first == NOBODY && newest == NOBODY)

/* Producers are alike: they come for the first time in this order, and the other orders are the same. */
bool came[PRODUCERS];
#define MAY_COME(p) (p == 0 || came[(p + PRODUCERS - 1) % PRODUCERS])

/* queue_push(), its first step. That ${t} is nobody else's yet is why the link is stored in the second. */
inline queue_look(before, t)
{
    d_step {
        assert(!inside[t]);
        before = newest
#ifdef STALE_LINK /* it is not stored again when the word has changed */
        ;
        next[t] = before
#endif
    }
}

/* And the compare-and-swap, until it succeeds; ${before} is 0 then. */
inline queue_swing(before, t)
{
    do
#ifdef PLAIN_STORE /* whatever the word is now */
    :: d_step { true ->
#else
    :: d_step { newest != before -> before = newest }
    :: d_step { newest == before ->
#endif
           assert(!inside[t]);
           inside[t] = true;
#ifndef STALE_LINK
           next[t] = before;
#endif
           newest = t;
           before = 0
       }
       break
    od
}

/* What the consumer keeps for itself. */
#define QUEUE_CONSUMER byte taken = NOBODY, before = NOBODY

/* Turn what was taken round. The nodes are the consumer's alone, and so it is one step. */
inline queue_turn()
{
    do
    :: taken != NOBODY ->
       assert(inside[taken]);
       before = next[taken];
       next[taken] = first;
       first = taken;
       taken = before
    :: else -> break
    od;
    before = NOBODY
}

inline queue_take()
{
#ifdef TAKE_IN_TWO /* a load and a store, and not an exchange */
    if
    :: d_step { first == NOBODY && newest != NOBODY -> taken = newest }
       d_step { newest = NOBODY; queue_turn() }
    :: else
    fi
#else
    d_step {
        if
        :: first == NOBODY ->
           taken = newest;
           newest = NOBODY;
#ifdef NO_TURN /* the last that came is the first */
           first = taken;
           taken = NOBODY
#else
           queue_turn()
#endif
        :: else
        fi
    }
#endif
}

/* ${t} is NOBODY, and still is if nothing is left of what was taken. */
inline queue_pop(t)
{
    d_step {
        if
        :: first != NOBODY ->
           assert(inside[first]);
           t = first;
           first = next[t];
           next[t] = NOBODY;
           inside[t] = false
        :: else
        fi
    }
}
