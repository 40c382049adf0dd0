/*
 * daemon/exit_code: what the exit status of reactord tells the one who started it.
 *
 * reactord.service, reactord(8) and --help state the same list.
 */
#ifndef DAEMON_EXIT_CODE_H
#define DAEMON_EXIT_CODE_H

enum exit_code {
    EXIT_CODE_OK = 0, /* stopped as asked, or did what an option asked for */
    EXIT_CODE_CONFIG =
        1, /* the configuration has errors or cannot be read: a restart changes nothing */
    EXIT_CODE_USAGE = 2,  /* the command line has errors: a restart changes nothing */
    EXIT_CODE_START = 3,  /* could not start: address in use, permission, user, pid file, log */
    EXIT_CODE_FAILED = 4, /* failed while running, or a loop hung when it was to end */
};

#endif
