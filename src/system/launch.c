#include "system/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/text_stream.h"
#include "system/capabilities.h"

/* Maximum digits of a pid. */
#define LAUNCH_PID_BYTES 12

/* CLOSE_RANGE_CLOEXEC, since Linux 5.11; on older kernels descriptors have FD_CLOEXEC anyway. */
#define LAUNCH_SET_CLOEXEC 4U

/* Message from the parent to the starter. */
struct launch_report {
    enum { LAUNCH_STARTED, LAUNCH_NO_PROCESS, LAUNCH_ENDED } kind;
    int value; /* by `kind`: pid, errno, status of waitpid(2) */
};

/*
 * What the forked processes need. Built before the fork: afterwards only async-signal-safe
 * functions may be called.
 */
struct launch_plan {
    const struct launch_conf *conf;
    pid_t starter;
    int report_fd;
    int *exec_error; /* memory shared with the program's process */
    char **environment;
    char *texts; /* LISTEN_FDS and LISTEN_FDNAMES */
    int *at;     /* numbers of the descriptors now */
    int *sorted; /* the descriptors, ascending */
    char listen_pid[sizeof("LISTEN_PID=") + LAUNCH_PID_BYTES];
    char watchdog_pid[sizeof("WATCHDOG_PID=") + LAUNCH_PID_BYTES];
};

/* ---- before the fork ---- */

static bool launch_is_own(const char *assignment)
{
    static const char *const own[] = {
        "LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "LISTEN_PIDFDID=", "WATCHDOG_PID="};

    for (unsigned i = 0; i < ARRAY_LEN(own); i++)
        if (strncmp(assignment, own[i], strlen(own[i])) == 0)
            return true;
    return false;
}

/* Write `LISTEN_FDS=2` NUL `LISTEN_FDNAMES=a:b` NUL; the second text begins at ${names}. */
static int launch_format(struct launch_plan *plan, size_t *names)
{
    size_t len;
    FILE *f = open_memstream(&plan->texts, &len);

    if (!f)
        return -ENOMEM;
    fprintf(f, "LISTEN_FDS=%u%c", plan->conf->n, '\0');
    *names = (size_t)ftell(f);
    fputs("LISTEN_FDNAMES=", f);
    for (unsigned i = 0; i < plan->conf->n; i++)
        fprintf(f, "%s%s", i > 0 ? ":" : "", plan->conf->descriptors[i].name);
    return text_stream_close(f, &plan->texts);
}

static int launch_compare(const void *a, const void *b)
{
    const int *first = a, *second = b;

    return (*first > *second) - (*first < *second);
}

static int launch_sort(struct launch_plan *plan)
{
    const struct launch_conf *conf = plan->conf;

    plan->sorted = calloc(conf->n + 1, sizeof(int));
    if (!plan->sorted)
        return -ENOMEM;
    for (unsigned i = 0; i < conf->n; i++)
        plan->sorted[i] = conf->descriptors[i].fd;
    qsort(plan->sorted, conf->n, sizeof(int), launch_compare);
    return 0;
}

static int launch_plan_open(struct launch_plan *plan, const struct launch_conf *conf)
{
    size_t n = 0, names;
    int rc;

    *plan = (struct launch_plan){.conf = conf,
                                 .starter = getpid(),
                                 .listen_pid = "LISTEN_PID=",
                                 .watchdog_pid = "WATCHDOG_PID="};
    rc = launch_sort(plan);
    if (rc == 0)
        rc = launch_format(plan, &names);
    if (rc < 0)
        return rc;
    while (environ[n])
        n++;
    plan->environment = calloc(n + 5, sizeof(char *));
    plan->at = calloc(conf->n + 1, sizeof(int));
    if (!plan->environment || !plan->at)
        return -ENOMEM;
    n = 0;
    for (char **e = environ; *e; e++)
        if (!launch_is_own(*e))
            plan->environment[n++] = *e;
    plan->environment[n++] = plan->texts;
    plan->environment[n++] = plan->texts + names;
    plan->environment[n++] = plan->listen_pid;
    if (getenv("WATCHDOG_USEC"))
        plan->environment[n++] = plan->watchdog_pid;
    return 0;
}

static void launch_plan_close(struct launch_plan *plan)
{
    free(plan->environment);
    free(plan->at);
    free(plan->sorted);
    free(plan->texts);
}

/* ---- after the fork: async-signal-safe ---- */

/* False: the starter, which reads the pipe, has ended. */
static bool launch_report(int fd, int kind, int value)
{
    const struct launch_report report = {.kind = kind, .value = value};
    ssize_t n;

    do
        n = write(fd, &report, sizeof(report));
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(report);
}

static void launch_append_pid(char *assignment, pid_t pid)
{
    char *end = strchr(assignment, '\0');
    unsigned digits = 1;

    for (pid_t rest = pid; rest >= 10; rest /= 10)
        digits++;
    end[digits] = '\0';
    for (; digits > 0; digits--, pid /= 10)
        end[digits - 1] = (char)('0' + pid % 10);
}

/*
 * Close all descriptors from LISTEN_FDS's first on that the program does not get: connections may
 * have used all that the limit of open files allows, and the copies need descriptors.
 */
static void launch_close_unwanted(const struct launch_plan *plan)
{
    unsigned next = SD_LISTEN_FDS_START;

    for (unsigned i = 0; i < plan->conf->n; i++) {
        unsigned fd = (unsigned)plan->sorted[i];

        if (fd > next)
            (void)syscall(SYS_close_range, next, fd - 1, 0U);
        next = fd >= next ? fd + 1 : next;
    }
    (void)syscall(SYS_close_range, next, ~0U, 0U);
}

/* Find the next place, from ${i} on, of the descriptor ${fd}; conf->n: there is none. */
static unsigned launch_find(const struct launch_plan *plan, unsigned i, int fd)
{
    for (; i < plan->conf->n && plan->at[i] != fd; i++)
        ;
    return i;
}

/* Move the descriptor at ${to} away, if one of those from ${i} on is there: its number is taken. */
static int launch_move_away(const struct launch_plan *plan, unsigned i, int to, int above)
{
    if (fcntl(to, F_GETFD) < 0)
        return 0; /* the number is free */
    for (i = launch_find(plan, i, to); i < plan->conf->n; i = launch_find(plan, i + 1, to)) {
        plan->at[i] = fcntl(to, F_DUPFD_CLOEXEC, above);
        if (plan->at[i] < 0)
            return -errno;
    }
    return 0;
}

/*
 * Give the descriptors their target numbers, one after the other: one may have the target number of
 * another. A number is closed as soon as it is free, since the limit of open files may be near.
 */
static int launch_place_descriptors(const struct launch_plan *plan)
{
    const struct launch_conf *conf = plan->conf;
    int first = SD_LISTEN_FDS_START, above = first + (int)conf->n;

    for (unsigned i = 0; i < conf->n; i++)
        plan->at[i] = conf->descriptors[i].fd;
    for (unsigned i = 0; i < conf->n; i++) {
        int to = first + (int)i, rc = launch_move_away(plan, i + 1, to, above);

        if (rc < 0)
            return rc;
        if (plan->at[i] == to) {
            (void)fcntl(to, F_SETFD, 0);
            continue;
        }
        if (dup2(plan->at[i], to) < 0) /* clears FD_CLOEXEC */
            return -errno;
        if (launch_find(plan, i + 1, plan->at[i]) == conf->n)
            close(plan->at[i]);
    }
    (void)syscall(SYS_close_range, (unsigned)above, ~0U, LAUNCH_SET_CLOEXEC);
    return 0;
}

static _Noreturn void launch_exec(struct launch_plan *plan)
{
    const struct launch_conf *conf = plan->conf;
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    int rc;

    launch_close_unwanted(plan);
    rc = launch_place_descriptors(plan);
    if (rc == 0) {
        launch_append_pid(plan->listen_pid, getpid());
        launch_append_pid(plan->watchdog_pid, getpid());
        if (capabilities_survive_exec() < 0)
            errno = 0; /* go on: at worst, new ports below 1024 cannot be bound */
        sigaction(SIGPIPE, &usual, NULL);
        sigaction(SIGXFSZ, &usual, NULL);
        sigprocmask(SIG_SETMASK, conf->mask, NULL);
        execve(conf->path, conf->argv, plan->environment);
        rc = -errno;
    }
    *plan->exec_error = -rc;
    _exit(EXIT_FAILURE);
}

/*
 * Close all descriptors but ${fd}: sockets would stay open here after the starter has closed them.
 */
static void launch_close_others(int fd)
{
    if (fd > 0)
        syscall(SYS_close_range, 0U, (unsigned)fd - 1, 0U);
    syscall(SYS_close_range, (unsigned)fd + 1, ~0U, 0U);
}

static _Noreturn void launch_wait(struct launch_plan *plan)
{
    pid_t pid;
    int status;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan->starter)
        _exit(EXIT_FAILURE); /* the starter has ended */
    pid = fork();
    if (pid == 0)
        launch_exec(plan);
    launch_close_others(plan->report_fd);
    if (pid < 0) {
        (void)launch_report(plan->report_fd, LAUNCH_NO_PROCESS, errno);
        _exit(EXIT_FAILURE);
    }
    if (!launch_report(plan->report_fd, LAUNCH_STARTED, pid))
        kill(pid, SIGKILL); /* nobody knows of it: it would serve beside the starter */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    (void)launch_report(plan->report_fd, LAUNCH_ENDED, status);
    _exit(EXIT_SUCCESS);
}

/* ---- main ---- */

static void launch_end_parent(pid_t parent)
{
    kill(parent, SIGKILL);
    while (waitpid(parent, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Read the first report, which comes at once. */
static int launch_read_pid(struct launch *l)
{
    struct launch_report report;
    ssize_t n;

    do
        n = read(l->report_fd, &report, sizeof(report));
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(report))
        return -ECHILD; /* the parent was killed */
    if (report.kind == LAUNCH_NO_PROCESS)
        return -report.value;
    l->pid = report.value;
    return 0;
}

/* Fork the parent (see launch.h), which starts the program, and read its first report. */
static int launch_fork(struct launch *l, struct launch_plan *plan)
{
    int rc;

    l->parent = fork();
    if (l->parent < 0)
        return -errno;
    if (l->parent == 0)
        launch_wait(plan);
    rc = launch_read_pid(l);
    if (rc < 0)
        launch_end_parent(l->parent);
    else /* at once: the kernel does not reuse the pid so soon */
        l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
    return rc;
}

int launch_start(struct launch *out, const struct launch_conf *conf)
{
    struct launch l = {.pidfd = -1};
    struct launch_plan plan;
    int ends[2], rc = launch_plan_open(&plan, conf);

    if (rc < 0)
        goto out_plan;
    l.exec_error =
        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l.exec_error == MAP_FAILED) {
        rc = -ENOMEM;
        goto out_plan;
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        rc = -errno;
        goto err_unmap;
    }
    l.report_fd = ends[0];
    plan.report_fd = ends[1];
    plan.exec_error = l.exec_error;
    rc = launch_fork(&l, &plan);
    close(ends[1]);
    if (rc < 0)
        goto err_close;
    *out = l;
    goto out_plan;
err_close:
    close(ends[0]);
err_unmap:
    munmap(l.exec_error, sizeof(int));
out_plan:
    launch_plan_close(&plan);
    return rc;
}

static const char *launch_format_status(char *text, size_t size, int status)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
    return text;
}

const char *launch_result(const struct launch *l, char *text, size_t size)
{
    struct pollfd ready = {.fd = l->report_fd, .events = POLLIN};
    struct launch_report report;

    if (*l->exec_error != 0)
        snprintf(text, size, "cannot be executed: %s", strerror(*l->exec_error));
    else if (poll(&ready, 1, 0) <= 0)
        snprintf(text, size, "runs");
    else if (read(l->report_fd, &report, sizeof(report)) != (ssize_t)sizeof(report))
        snprintf(text, size, "ended");
    else
        launch_format_status(text, size, report.value);
    return text;
}

void launch_kill(const struct launch *l)
{
    if (l->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, l->pidfd, SIGKILL, NULL, 0);
    else
        kill(l->pid, SIGKILL);
}

void launch_release(struct launch *l)
{
    if (l->parent > 0)
        launch_end_parent(l->parent);
    l->parent = 0;
}

void launch_close(struct launch *l)
{
    launch_release(l);
    if (l->pidfd >= 0)
        close(l->pidfd);
    close(l->report_fd);
    munmap(l->exec_error, sizeof(int));
}
