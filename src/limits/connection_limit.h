/*
 * limits/connection_limit: is there room for one more client: in the process, and at its listener?
 * And the listen sockets that wait until there is.
 *
 * note: room. A socket that finds none says that it waits and then looks again; who leaves counts
 * itself out and then looks who waits. Both are sequentially consistent, so one of the two sees the
 * other: no socket waits while there is room. The waiting itself costs nothing: the last one who
 * left has submitted the socket's task to its boss loop.
 *
 *   NONE --finds no room--> WAITING --someone leaves--> WOKEN (its task is under way) --the task
 *   runs--> NONE
 *                              \--finds room after all--> NONE
 */
#ifndef LIMITS_CONNECTION_LIMIT_H
#define LIMITS_CONNECTION_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/task.h"
#include "limits/quota.h"

struct loop;

enum connection_limit_waiter_state {
    CONNECTION_LIMIT_NONE,
    CONNECTION_LIMIT_WAITING,
    CONNECTION_LIMIT_WOKEN
};

/* Embedded in a listen socket. */
struct connection_limit_waiter {
    struct loop *loop;
    void (*again)(struct connection_limit_waiter *w); /* there may be room; on that loop */
    atomic_int state; /* enum connection_limit_waiter_state; see note: room */
    struct task wake;
    struct connection_limit_waiter *next;
};

/* The process's. */
struct connection_limit {
    struct quota quota;
    _Atomic(const char *)
        closed_by; /* the option for which there is none for anybody; NULL: none */
    atomic_uint waiting;
    struct connection_limit_waiter *waiters; /* all there are; does not change after start */
};

/* A boss whose queue is full refuses a wake-up; then the socket looks by itself. */
#define ROOM_LOOK_NS INT64_C(1000000000)

/*
 * connection_limit_init(room, conf):
 * An empty process.
 *
 * Thread: before start
 * Owns:   ${conf} is copied
 */
void connection_limit_init(struct connection_limit *room, const struct quota_conf *conf);

/*
 * connection_limit_add(room, w, loop, again):
 * ${w} may wait from now on, on ${loop}.
 *
 * Thread: before start
 * Owns:   nothing; ${w} must outlive whoever may leave
 */
void connection_limit_add(struct connection_limit *room, struct connection_limit_waiter *w,
                          struct loop *loop, void (*again)(struct connection_limit_waiter *w));

/*
 * connection_limit_enter(room, own) / connection_limit_enter_or_wait(room, own, w):
 * One more client, in the process and at its listener, whose quota is ${own}: 0 if there is room.
 * If not the answer is when it is worth asking again, and ${w} is told earlier if someone leaves.
 *
 * Thread: any; loop of ${w}
 * Units:  ns, at most ROOM_LOOK_NS
 */
int64_t connection_limit_enter(struct connection_limit *room, struct quota *own) NODISCARD;
int64_t connection_limit_enter_or_wait(struct connection_limit *room, struct quota *own,
                                       struct connection_limit_waiter *w) NODISCARD;

/*
 * connection_limit_leave(room, own) / connection_limit_withdraw(room, own):
 * A client has gone; one that was let in did not come, or was sent away for a reason of its own.
 *
 * Thread: any
 */
void connection_limit_leave(struct connection_limit *room, struct quota *own);
void connection_limit_withdraw(struct connection_limit *room, struct quota *own);

/*
 * connection_limit_close(room, option) / connection_limit_open(room):
 * From now on there is no room, whatever the limits say, because of ${option}; there is again.
 *
 * Thread: any
 * Owns:   nothing; ${option} lasts for ever
 */
void connection_limit_close(struct connection_limit *room, const char *option);
void connection_limit_open(struct connection_limit *room);

/*
 * connection_limit_full_of(room, own):
 * The option that keeps the next client out, for logs.
 *
 * Thread: any
 */
const char *connection_limit_full_of(const struct connection_limit *room, const struct quota *own);

#endif
