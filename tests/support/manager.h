/*
 * support/manager: a service manager in the place of systemd: the socket that NOTIFY_SOCKET names.
 */
#ifndef SUPPORT_MANAGER_H
#define SUPPORT_MANAGER_H

/*
 * manager_open() / manager_close():
 * Listen in the abstract name space, so that nothing stays behind, and say so in the environment,
 * which has no watchdog; stop listening.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void manager_open(void);
void manager_close(void);

/*
 * manager_watch(period_us, pid):
 * Wait for signs of life as systemd does: WATCHDOG_USEC and WATCHDOG_PID, of which NULL unsets one.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void manager_watch(const char *period_us, const char *pid);

/*
 * manager_fill():
 * Put messages into the queue of the socket until it takes no more.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void manager_fill(void);

/*
 * manager_received():
 * The next message that arrived, "" for none.
 *
 * Thread: the test's
 * Owns:   nothing; the text holds until the next call
 */
const char *manager_received(void);

#endif
