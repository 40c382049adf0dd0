/*
 * daemon/exit_code: exit status.
 *
 * Also listed in reactord.service, reactord(8) and --help.
 */
#ifndef DAEMON_EXIT_CODE_H
#define DAEMON_EXIT_CODE_H

enum exit_code {
    EXIT_CODE_OK = 0,     /* stopped on request, or an option such as --test succeeded */
    EXIT_CODE_CONFIG = 1, /* configuration invalid or unreadable: a restart does not help */
    EXIT_CODE_USAGE = 2,  /* command line invalid: a restart does not help */
    EXIT_CODE_START = 3,  /* could not start: address in use, permission, user, pid file, log */
    EXIT_CODE_FAILED = 4, /* failed while running, or a loop hung at shutdown */
};

#endif
