/*
 * support/handed: a service manager that hands over descriptors: LISTEN_FDS and its like.
 *
 * They have the numbers from 3 on, which are set aside before check opens files of its own.
 */
#ifndef SUPPORT_HANDED_H
#define SUPPORT_HANDED_H

/* Most descriptors. */
#define HANDED_MAX 6

/*
 * handed_open() / handed_close():
 * Hand over nothing yet; close what is open of it.
 *
 * Thread: the test's
 */
void handed_open(void);
void handed_close(void);

/*
 * handed_add(fd, name):
 * Hand over ${fd} under ${name}, as the next number, which is returned.
 *
 * Thread: the test's
 * Owns:   takes ${fd}
 * Errors: the test fails
 */
int handed_add(int fd, const char *name);

#endif
