/*
 * handover/server_bans_state: hands bans to the process that replaces this one.
 *
 *   ban LISTENER BLOCK ZONE OFFENCE SINCE UNTIL REFUSED      times in ns of CLOCK_MONOTONIC
 */
#ifndef HANDOVER_SERVER_BANS_STATE_H
#define HANDOVER_SERVER_BANS_STATE_H

#include <stdio.h>

struct server;

/* server_bans_state_write(sv, f): write a line for each ban. Thread: main */
void server_bans_state_write(struct server *sv, FILE *f);

/*
 * server_bans_state_use(sv, text):
 * Add the bans in ${text}; other lines are ignored. Log those that no listener has.
 *
 * Thread: main
 */
void server_bans_state_use(struct server *sv, const char *text);

#endif
