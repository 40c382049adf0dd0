/*
 * engine/lock: mutex for the layers above, for rare and short critical sections.
 *
 * Do not block or call back while holding it.
 */
#ifndef ENGINE_LOCK_H
#define ENGINE_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
};

/* For a static lock, which needs no lock_init(). */
#define LOCK_INITIALIZER                   \
    {                                      \
        .mutex = PTHREAD_MUTEX_INITIALIZER \
    }

/* lock_init(l) / lock_close(l): create / destroy. Thread: any, while no other thread uses ${l} */
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
 * Thread: any; lock_release(): the thread that locked
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
