/* system/program: path and arguments of this program, to start it again. */
#ifndef SYSTEM_PROGRAM_H
#define SYSTEM_PROGRAM_H

#include <signal.h>

#include "base/must.h"

struct program {
    char *path;    /* absolute; the file at this path is started */
    char **argv;   /* arguments of main() */
    sigset_t mask; /* signals blocked when main() began */
};

/*
 * program_open(p, argv):
 * Find the path of this program from ${argv}[0] as the shell does, without following symbolic
 * links; else from the kernel.
 *
 * Thread: main, before signals_open()
 * Owns:   ${argv} must outlive ${p}
 * Errors: 0; -ENOMEM; as readlink(2) and getcwd(3)
 */
int program_open(struct program *p, char **argv) NODISCARD;

/* program_close(p): free what program_open() allocated. */
void program_close(struct program *p);

#endif
