/*
 * upgrade/past: hands history and events from the admin interface of the old process to that of the
 * new one.
 *
 *   old: past_send()      new: past_keep() of each message -> past_use(), before admin_start()
 *
 * Each is a memory file of its own. What is incomplete or wrong is logged, and begins anew.
 */
#ifndef UPGRADE_PAST_H
#define UPGRADE_PAST_H

#include <stdbool.h>

struct admin;
struct successor;

enum { PAST_HISTORY, PAST_EVENTS, PAST_KINDS };

struct past {
    int fds[PAST_KINDS]; /* -1: not received */
};

/* past_send(a, s): send what ${a} remembers to ${s}; NULL: nothing. */
void past_send(struct admin *a, struct successor *s);

/* past_init(p) / past_close(p): nothing was received / close what was received. */
void past_init(struct past *p);
void past_close(struct past *p);

/* past_keep(p, text, fd): if the message ${text} is one of past_send(), take ${fd}. */
bool past_keep(struct past *p, const char *text, int fd);

/* past_use(p, a): give ${a}, or NULL, what was received, before admin_start(), and close it. */
void past_use(struct past *p, struct admin *a);

#endif
