/*
 * ctl/ctl_exit: exit status of reactorctl. Also listed in reactorctl(1).
 */
#ifndef CTL_CTL_EXIT_H
#define CTL_CTL_EXIT_H

enum ctl_exit {
    CTL_EXIT_OK = 0,
    CTL_EXIT_REFUSED = 1, /* by the daemon, or by the user when asked */
    CTL_EXIT_FAILED = 2,  /* usage; daemon unreachable; answer unusable */
};

#endif
