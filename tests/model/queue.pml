/*
 * model/queue: src/engine/queue.c, a step for each access to what threads share. Both models include it.
 *
 * A node is a number: the stub is 0, tasks begin at 1. `inside` is not in the code: it says which nodes the queue owns,
 * so that a producer that writes to a node after it was popped (its memory may be gone) is found.
 */
#define STUB   0
#define NODES  (1 + PRODUCERS * TASKS_EACH)
#define NOBODY 255

#define TASK(p, k) (1 + (p) * TASKS_EACH + (k))
#define OWNER(t)   (((t) - 1) / TASKS_EACH)
#define NUMBER(t)  (((t) - 1) % TASKS_EACH)

byte tail = STUB;
byte next[NODES] = NOBODY;
bool inside[NODES];

/* Producers are alike: they come for the first time in this order, and the other orders are the same. */
bool came[PRODUCERS];
#define MAY_COME(p) (p == 0 || came[(p + PRODUCERS - 1) % PRODUCERS])

inline queue_init()
{
    inside[STUB] = true
}

/* queue_push(), its first half: from here on ${t} is in the queue, but cannot be reached before queue_link(). */
inline queue_exchange(prev, t)
{
    d_step {
        assert(!inside[t]);
        inside[t] = true;
        next[t] = NOBODY; /* nobody else can see ${t} yet */
        prev = tail;
        tail = t
    }
}

/* The second half. */
inline queue_link(prev, t)
{
    d_step {
        assert(inside[prev]);
        next[prev] = t;
        prev = NOBODY
    }
}

/* What the consumer keeps for itself. */
#define QUEUE_CONSUMER byte head = STUB, after = NOBODY, before = NOBODY

/* Take `head` if a node can be reached behind it. */
inline queue_take(t)
{
    d_step {
        after = next[head];
        if
        :: after != NOBODY ->
           inside[head] = false;
           next[head] = NOBODY;
           t = head;
           head = after;
           after = NOBODY
        :: else
        fi
    }
}

/* Nothing but the stub can come behind the last task. */
inline queue_take_last(t)
{
#ifdef TAKE_LAST /* without it */
    d_step {
        inside[head] = false;
        inside[STUB] = true;
        t = head;
        head = STUB
    }
#else
    queue_exchange(before, STUB);
    queue_link(before, STUB);
    queue_take(t)
#endif
}

/* ${t} is NOBODY, and still is if no task can be reached. */
inline queue_pop(t)
{
    queue_take(t);
    if
    :: atomic { t == STUB -> t = NOBODY; queue_take(t) } /* the stub is stepped over */
    :: t != STUB
    fi;
    if
    :: t == NOBODY && head != STUB && tail == head -> queue_take_last(t)
    :: else
    fi
}
