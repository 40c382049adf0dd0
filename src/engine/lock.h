/*
 * engine/lock: mutex for rare, short sections of the layers above.
 *
 * No blocking call or callback inside; per-byte and per-task work takes no lock.
 */
#ifndef ENGINE_LOCK_H
#define ENGINE_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
};

/*
 * lock_init(l) / lock_close(l):
 * Initialize / destroy.
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
 * Lock / unlock.
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
