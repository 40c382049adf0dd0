/* server/room: see room.h. */
#include "server/room.h"

#include "base/clock.h"
#include "engine/loop.h"

static bool room_move(struct room_waiter *w, enum room_waiter_state from, enum room_waiter_state to)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong(&w->state, &expected, (int)to);
}

/* ---- the sockets that wait ---- */

static void room_run_wake(struct task *t)
{
    struct room_waiter *w = CONTAINER_OF(t, struct room_waiter, wake);

    MUST(room_move(w, ROOM_WOKEN, ROOM_NONE));
    w->again(w);
}

static void room_drop_wake(struct task *t)
{
    (void)t; /* the boss has ended: nobody waits there any more */
}

static const struct task_type room_wake_type = {
    .name = "room for a client", .run = room_run_wake, .drop = room_drop_wake};

void room_init(struct room *room, const struct quota_conf *conf)
{
    quota_init(&room->quota, conf);
    atomic_init(&room->closed_by, NULL);
    atomic_init(&room->waiting, 0);
    room->waiters = NULL;
}

void room_add(struct room *room, struct room_waiter *w, struct loop *loop,
              void (*again)(struct room_waiter *w))
{
    *w = (struct room_waiter){
        .loop = loop, .again = again, .wake.type = &room_wake_type, .next = room->waiters};
    room->waiters = w;
}

/* All of them: whom the place is good for shows when they ask. */
static void room_wake(struct room *room)
{
    if (atomic_load(&room->waiting) == 0) /* see note: room */
        return;
    for (struct room_waiter *w = room->waiters; w; w = w->next) {
        if (!room_move(w, ROOM_WAITING, ROOM_WOKEN))
            continue;
        atomic_fetch_sub(&room->waiting, 1);
        if (loop_submit(w->loop, LOOP_CONTROL, &w->wake) < 0)
            MUST(room_move(w, ROOM_WOKEN, ROOM_NONE)); /* see ROOM_LOOK_NS */
    }
}

/* ---- the clients ---- */

static int64_t room_wait_ns(const struct room *room, const struct quota *own, int64_t now_ns)
{
    int64_t process_ns = quota_wait_ns(&room->quota, now_ns);
    int64_t own_ns = quota_wait_ns(own, now_ns);

    return process_ns > own_ns ? process_ns : own_ns;
}

/* Looking first: two sockets that take one place and miss the other would wake each other in turn, for ever. */
static int64_t room_try(struct room *room, struct quota *own)
{
    int64_t now_ns, wait_ns;

    if (atomic_load(&room->closed_by))
        return CLOCK_NEVER;
    if (!quota_is_limited(&room->quota) && !quota_is_limited(own))
        return 0;
    now_ns = clock_now_ns();
    while ((wait_ns = room_wait_ns(room, own, now_ns)) == 0) {
        if (!quota_enter(own, now_ns))
            continue; /* another thread was faster */
        if (quota_enter(&room->quota, now_ns))
            return 0;
        quota_withdraw(own);
        room_wake(room);
    }
    return wait_ns;
}

static int64_t room_look_again_ns(int64_t wait_ns)
{
    return wait_ns < ROOM_LOOK_NS ? wait_ns : ROOM_LOOK_NS;
}

int64_t room_enter(struct room *room, struct quota *own)
{
    return room_look_again_ns(room_try(room, own));
}

int64_t room_enter_or_wait(struct room *room, struct quota *own, struct room_waiter *w)
{
    int64_t wait_ns = room_try(room, own);

    if (wait_ns != CLOCK_NEVER)
        return room_look_again_ns(wait_ns);
    atomic_fetch_add(&room->waiting, 1); /* first: all that wait are counted */
    if (!room_move(w, ROOM_NONE, ROOM_WAITING)) {
        atomic_fetch_sub(&room->waiting, 1);
        return room_look_again_ns(wait_ns);
    }
    wait_ns = room_try(room, own); /* see note: room */
    if (wait_ns == 0 && room_move(w, ROOM_WAITING, ROOM_NONE))
        atomic_fetch_sub(&room->waiting, 1);
    return room_look_again_ns(wait_ns);
}

void room_leave(struct room *room, struct quota *own)
{
    quota_leave(own);
    quota_leave(&room->quota);
    room_wake(room);
}

void room_withdraw(struct room *room, struct quota *own)
{
    quota_withdraw(own);
    quota_withdraw(&room->quota);
    room_wake(room);
}

void room_close(struct room *room, const char *option)
{
    atomic_store(&room->closed_by, option);
}

void room_open(struct room *room)
{
    atomic_store(&room->closed_by, NULL);
    room_wake(room);
}

const char *room_full_of(const struct room *room, const struct quota *own)
{
    const char *closed_by = atomic_load(&room->closed_by);
    int64_t now_ns = clock_now_ns();

    if (closed_by)
        return closed_by;
    if (quota_wait_ns(own, now_ns) == CLOCK_NEVER)
        return "max_connections";
    if (quota_wait_ns(&room->quota, now_ns) == CLOCK_NEVER)
        return "max_connections of [reactord]";
    return quota_wait_ns(own, now_ns) > 0 ? "connection_rate" : "connection_rate of [reactord]";
}
