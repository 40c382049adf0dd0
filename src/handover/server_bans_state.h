/*
 * handover/server_bans_state: hands bans to the process that replaces this one.
 *
 *   ban OWNER BLOCK ZONE OFFENCE SINCE UNTIL REFUSED [dry]      times in ns of CLOCK_MONOTONIC
 *   ban_share NAME LISTENER
 *
 * OWNER is a listener, or limits:NAME for the listeners of the lines ban_share, which come first.
 * They keep the bans as in a reload, whatever their `limits` is in the next process.
 */
#ifndef HANDOVER_SERVER_BANS_STATE_H
#define HANDOVER_SERVER_BANS_STATE_H

#include <stdint.h>
#include <stdio.h>

struct server;

/* Bans that are handed over at most: about 100 MB. */
#define SERVER_BANS_STATE_MAX 1000000

/*
 * server_bans_state_write(sv, f, since_ns, max):
 * Write a line for each ban that began at ${since_ns} or later. Of more than ${max}, write those
 * with the most time left, and log the number of the others. Returns the number of bans.
 *
 * Thread: main
 */
unsigned server_bans_state_write(struct server *sv, FILE *f, int64_t since_ns, unsigned max);

/*
 * server_bans_state_use(sv, f):
 * Add the bans of ${f}. Log how many were lost, and why.
 *
 * Thread: main
 */
void server_bans_state_use(struct server *sv, FILE *f);

#endif
