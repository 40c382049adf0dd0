/*
 * engine/lock: mutual exclusion for the layers above, around what is rare and short: no call that
 * may block, no callback. What is on the way of every byte or task is owned by one loop instead, or
 * atomic.
 */
#ifndef ENGINE_LOCK_H
#define ENGINE_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
};

/*
 * lock_init(l) / lock_close(l):
 * Before its first use; after its last.
 *
 * Thread: one
 */
static inline void lock_init(struct lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
}

static inline void lock_close(struct lock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

/*
 * lock_take(l) / lock_release(l):
 * Wait until nobody has it, and have it; let others have it.
 *
 * Thread: any; the same one
 */
static inline void lock_take(struct lock *l)
{
    pthread_mutex_lock(&l->mutex);
}

static inline void lock_release(struct lock *l)
{
    pthread_mutex_unlock(&l->mutex);
}

#endif
