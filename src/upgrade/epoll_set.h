/* upgrade/epoll_set: what the main thread waits for, behind one descriptor. */
#ifndef UPGRADE_EPOLL_SET_H
#define UPGRADE_EPOLL_SET_H

#include <errno.h>
#include <sys/epoll.h>

#include "base/must.h"

/* epoll_set_add(epoll_fd, fd): make ${epoll_fd} readable while ${fd} is. Errors: of epoll_ctl(2) */
static inline int NODISCARD epoll_set_add(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* epoll_set_remove(epoll_fd, fd): undo epoll_set_add(). */
static inline void epoll_set_remove(int epoll_fd, int fd)
{
    (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

#endif
