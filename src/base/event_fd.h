/*
 * base/event_fd: makes an eventfd(2) readable.
 */
#ifndef BASE_EVENT_FD_H
#define BASE_EVENT_FD_H

#include <stdbool.h>

/*
 * event_fd_signal(fd):
 * Add one to the eventfd ${fd}. A write that fails is repeated, because the reader might wait for
 * ever. False: all attempts failed, which is logged.
 */
bool event_fd_signal(int fd);

#endif
