/*
 * ctl/ctl_exit: exit status of reactorctl. Also listed in reactorctl(1).
 */
#ifndef CTL_CTL_EXIT_H
#define CTL_CTL_EXIT_H

enum ctl_exit {
    CTL_EXIT_OK = 0,
    CTL_EXIT_REFUSED = 1, /* the daemon refused, or the user declined */
    CTL_EXIT_FAILED = 2,  /* wrong usage, daemon unreachable, or answer unusable */
};

#endif
