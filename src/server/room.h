/*
 * server/room: is there room for one more client: in the process, and at its listener? And the listen sockets that wait
 * until there is.
 *
 * note: room. A socket that finds none says that it waits and then looks again; who leaves counts itself out and then looks
 * who waits. Both are sequentially consistent, so one of the two sees the other: no socket waits while there is room. The
 * waiting itself costs nothing: the last one who left has submitted the socket's task to its boss loop.
 *
 *   NONE --finds no room--> WAITING --someone leaves--> WOKEN (its task is under way) --the task runs--> NONE
 *                              \--finds room after all--> NONE
 */
#ifndef SERVER_ROOM_H
#define SERVER_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/task.h"
#include "traffic/quota.h"

struct loop;

enum room_waiter_state { ROOM_NONE, ROOM_WAITING, ROOM_WOKEN };

/* Embedded in a listen socket. */
struct room_waiter {
    struct loop *loop;
    void (*again)(struct room_waiter *w); /* there may be room; on that loop */
    atomic_int state;                     /* enum room_waiter_state; see note: room */
    struct task wake;
    struct room_waiter *next;
};

/* The process's. */
struct room {
    struct quota quota;
    _Atomic(const char *)
        closed_by; /* the option for which there is none for anybody; NULL: none */
    atomic_uint waiting;
    struct room_waiter *waiters; /* all there are; does not change after start */
};

/* A boss whose queue is full refuses a wake-up; then the socket looks by itself. */
#define ROOM_LOOK_NS INT64_C(1000000000)

/*
 * room_init(room, conf):
 * An empty process.
 *
 * Thread: before start
 * Owns:   ${conf} is copied
 * Errors: none
 */
void room_init(struct room *room, const struct quota_conf *conf);

/*
 * room_add(room, w, loop, again):
 * ${w} may wait from now on, on ${loop}.
 *
 * Thread: before start
 * Owns:   nothing; ${w} must outlive whoever may leave
 * Errors: none
 */
void room_add(struct room *room, struct room_waiter *w, struct loop *loop,
              void (*again)(struct room_waiter *w));

/*
 * room_enter(room, own) / room_enter_or_wait(room, own, w):
 * One more client, in the process and at its listener, whose quota is ${own}: 0 if there is room. If not the answer is
 * when it is worth asking again, and ${w} is told earlier if someone leaves.
 *
 * Thread: any; loop of ${w}
 * Units:  ns, at most ROOM_LOOK_NS
 * Errors: none
 */
int64_t room_enter(struct room *room, struct quota *own) MUST_CHECK;
int64_t room_enter_or_wait(struct room *room, struct quota *own, struct room_waiter *w) MUST_CHECK;

/*
 * room_leave(room, own) / room_withdraw(room, own):
 * A client has gone; one that was let in did not come, or was sent away for a reason of its own.
 *
 * Thread: any
 * Errors: none
 */
void room_leave(struct room *room, struct quota *own);
void room_withdraw(struct room *room, struct quota *own);

/*
 * room_close(room, option) / room_open(room):
 * From now on there is no room, whatever the limits say, because of ${option}; there is again.
 *
 * Thread: any
 * Owns:   nothing; ${option} lasts for ever
 * Errors: none
 */
void room_close(struct room *room, const char *option);
void room_open(struct room *room);

/*
 * room_full_of(room, own):
 * The option that keeps the next client out, for logs.
 *
 * Thread: any
 * Errors: none
 */
const char *room_full_of(const struct room *room, const struct quota *own);

#endif
