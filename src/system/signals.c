#include "system/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name;
} collected[] = {
    {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
    {SIGHUP, "SIGHUP"},   {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"},
};

/*
 * In a container, process 1 is the parent of all orphans: the kernel reaps children whose parent
 * ignores SIGCHLD (wait(2)). Otherwise a parent's SIG_IGN would keep waitpid(2) from its result.
 */
static void signals_reap_orphans(void)
{
    const struct sigaction how = {.sa_handler = getpid() == 1 ? SIG_IGN : SIG_DFL};

    MUST(sigaction(SIGCHLD, &how, NULL) == 0);
    while (getpid() == 1 && waitpid(-1, NULL, WNOHANG) > 0)
        ; /* those that have ended before */
}

int signals_open(int *out_fd)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t mask;
    int fd;

    sigemptyset(&mask);
    sigaddset(&mask, SIGRTMIN); /* not a constant: not in the table */
    for (size_t i = 0; i < ARRAY_LEN(collected); i++)
        sigaddset(&mask, collected[i].number);
    fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    MUST(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
    MUST(sigaction(SIGPIPE, &ignore, NULL) == 0);
    MUST(sigaction(SIGXFSZ, &ignore, NULL) == 0);
    signals_reap_orphans();
    *out_fd = fd;
    return 0;
}

int signals_read(int fd, struct signal_notice *out)
{
    struct signalfd_siginfo info;
    ssize_t n = read(fd, &info, sizeof(info));

    if (n < 0)
        return -errno;
    MUST(n == (ssize_t)sizeof(info));
    *out = (struct signal_notice){
        .number = (int)info.ssi_signo, .pid = (pid_t)info.ssi_pid, .uid = info.ssi_uid};
    return 0;
}

const char *signals_name(int number)
{
    for (size_t i = 0; i < ARRAY_LEN(collected); i++)
        if (collected[i].number == number)
            return collected[i].name;
    return number == SIGRTMIN ? "SIGRTMIN" : "signal";
}
