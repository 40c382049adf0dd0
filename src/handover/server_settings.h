/*
 * handover/server_settings: hands what an administrator set at run time to the process that
 * replaces this one.
 *
 * One line for each setting: its value now, and the configured value. As in a reload, a setting
 * ends if another value is configured for the new process.
 *
 *   set server UPSTREAM/ID STATE,WEIGHT CONFIGURED   "-" for STATE or WEIGHT: as configured
 *   set server UPSTREAM/ID@ADDRESS STATE,WEIGHT CONFIGURED   one server of a name; "-": as the line
 *   set listener NAME MAX_CONNECTIONS CONFIGURED
 *   set process io_ratio N CONFIGURED
 *   set process log_level LEVEL CONFIGURED
 *   set process workers N CONFIGURED   CONFIGURED: N,MIN,MAX as in struct server_workers_conf
 *   set pause KIND/NAME UNTIL,HELD,RATE -
 *
 * And a line for what the load has set (`threads = auto`), where it does; not an administrator's:
 *
 *   scaled workers N
 *
 * For a pause, KIND is listener or upstream, and UNTIL its end in ns of CLOCK_MONOTONIC. HELD is
 * the most clients to hold, RATE the clients released per second. A pause has no configured
 * value.
 */
#ifndef HANDOVER_SERVER_SETTINGS_H
#define HANDOVER_SERVER_SETTINGS_H

#include <stdio.h>

#include "base/must.h"
#include "upstream/server_line.h"

struct server;

/* The words of the states of a server line, by enum server_line_state. */
extern const char *const server_settings_states[SERVER_LINE_DISABLED + 1];

/* server_settings_write(sv, f): write all settings. Thread: main, while no reload is under way */
void server_settings_write(struct server *sv, FILE *f);

/*
 * server_settings_use(sv, text):
 * Use the settings in ${text}, and reset all others; other lines of ${text} are ignored. Before
 * server_start() at once, afterwards on the control loop.
 *
 * Thread: main
 * Owns:   ${text} is copied
 * Errors: 0; as loop_submit(); -ENOMEM
 */
int server_settings_use(struct server *sv, const char *text) NODISCARD;

#endif
