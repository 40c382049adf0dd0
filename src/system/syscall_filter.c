#include "system/syscall_filter.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

/* Number of the argument of clone(2) that has the flags. */
#ifdef __s390x__
#define CLONE_FLAGS_ARGUMENT 1
#else
#define CLONE_FLAGS_ARGUMENT 0
#endif

/* Names that the architecture or an old libseccomp does not know are skipped. */
static const char *const allowed[] = {
    /* sockets and pipes */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    "pipe", "pipe2", "splice", "tee",
    /* descriptors and files */
    "close", "close_range", "dup", "dup2", "dup3", "fcntl", "fcntl64", "ioctl", "lseek", "_llseek",
    "open", "openat", "pread64", "preadv", "pwrite64", "pwritev", "read", "readv", "write",
    "writev", "fdatasync", "flock", "fsync", "ftruncate", "ftruncate64", "memfd_create", "access",
    "chmod", "faccessat", "faccessat2", "fchmod", "fchmodat", "fchown", "fchownat", "fstat",
    "fstat64", "fstatat64", "fstatfs", "fstatfs64", "getcwd", "getdents", "getdents64", "lstat",
    "lstat64", "newfstatat", "readlink", "readlinkat", "stat", "stat64", "statfs", "statfs64",
    "statx", "umask", "unlink", "unlinkat",
    /* waiting */
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd2", "poll", "ppoll", "ppoll_time64", "pselect6", "pselect6_time64", "_newselect",
    "select", "inotify_add_watch", "inotify_init1", "inotify_rm_watch", "signalfd4",
    "timerfd_create", "timerfd_gettime", "timerfd_settime", "timerfd_settime64",
    /* threads, memory and signals */
    "brk", "exit", "exit_group", "futex", "futex_time64", "get_robust_list", "madvise",
    "membarrier", "mremap", "munmap", "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending",
    "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "sched_getaffinity",
    "sched_getparam", "sched_getscheduler", "sched_setaffinity", "sched_setscheduler",
    "sched_yield", "set_robust_list", "setpriority", "sigaltstack",
    /* clocks and identity */
    "capget", "clock_getres", "clock_gettime", "clock_gettime64", "clock_nanosleep",
    "clock_nanosleep_time64", "getegid", "geteuid", "getgid", "getgroups", "getpid", "getpriority",
    "getppid", "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "gettid",
    "gettimeofday", "getuid", "nanosleep", "sysinfo", "time", "times", "ugetrlimit", "uname"};

static const int families[] = {AF_UNIX, AF_INET, AF_INET6};

static int syscall_filter_add(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned n,
                              const struct scmp_arg_cmp *arguments)
{
    int call = seccomp_syscall_resolve_name(name);

    return call == __NR_SCMP_ERROR ? 0 : seccomp_rule_add_array(filter, action, call, n, arguments);
}

static int syscall_filter_add_sockets(scmp_filter_ctx filter)
{
    int rc = 0;

    for (unsigned i = 0; i < ARRAY_LEN(families) && rc == 0; i++) {
        const struct scmp_arg_cmp family = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i], 0);

        rc = syscall_filter_add(filter, SCMP_ACT_ALLOW, "socket", 1, &family);
        if (rc == 0)
            rc = syscall_filter_add(filter, SCMP_ACT_ALLOW, "socketpair", 1, &family);
    }
    return rc;
}

/* Calls that are allowed with some arguments only. */
static int syscall_filter_add_partly(scmp_filter_ctx filter)
{
    const uint64_t both = PROT_WRITE | PROT_EXEC;
    const struct {
        const char *name;
        struct scmp_arg_cmp argument;
    } rules[] = {
        {"clone", SCMP_CMP64(CLONE_FLAGS_ARGUMENT, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)},
        {"mmap", SCMP_A2_64(SCMP_CMP_MASKED_EQ, both, 0)},
        {"mmap", SCMP_A2_64(SCMP_CMP_MASKED_EQ, both, PROT_WRITE)},
        {"mmap", SCMP_A2_64(SCMP_CMP_MASKED_EQ, both, PROT_EXEC)},
        {"mmap2", SCMP_A2_64(SCMP_CMP_MASKED_EQ, both, 0)},
        {"mmap2", SCMP_A2_64(SCMP_CMP_MASKED_EQ, both, PROT_WRITE)},
        {"mmap2", SCMP_A2_64(SCMP_CMP_MASKED_EQ, both, PROT_EXEC)},
        {"mprotect", SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)},
        {"prctl", SCMP_A0_64(SCMP_CMP_EQ, PR_SET_NAME, 0)},
        {"prctl", SCMP_A0_64(SCMP_CMP_EQ, PR_GET_NAME, 0)},
        {"prlimit64", SCMP_A2_64(SCMP_CMP_EQ, 0, 0)},     /* read limits only */
        {"setns", SCMP_A1(SCMP_CMP_EQ, CLONE_NEWNET, 0)}, /* see net/netns */
        {"tgkill", SCMP_A0_64(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0)},
    };
    int rc = 0;

    for (unsigned i = 0; i < ARRAY_LEN(rules) && rc == 0; i++)
        rc = syscall_filter_add(filter, SCMP_ACT_ALLOW, rules[i].name, 1, &rules[i].argument);
    /* A filter cannot read clone3(2)'s flags, which are in memory: make libc use clone(2). */
    return rc < 0 ? rc : syscall_filter_add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
}

static int syscall_filter_build(scmp_filter_ctx filter)
{
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);

    if (rc == -EINVAL || rc == -EOPNOTSUPP)
        rc = 0; /* an old kernel does not log refused calls */
    if (rc == 0)
        rc = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1); /* return the kernel's errors */
    for (unsigned i = 0; i < ARRAY_LEN(allowed) && rc == 0; i++)
        rc = syscall_filter_add(filter, SCMP_ACT_ALLOW, allowed[i], 0, NULL);
    if (rc == 0)
        rc = syscall_filter_add_sockets(filter);
    return rc < 0 ? rc : syscall_filter_add_partly(filter);
}

int syscall_filter_load(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int rc = filter ? syscall_filter_build(filter) : -ENOMEM;
    bool is_built = rc == 0;

    if (is_built)
        rc = seccomp_load(filter);
    if (filter)
        seccomp_release(filter);
    if (rc < 0)
        log_error("seccomp: %s: %s",
                  is_built ? "the kernel refuses the system call filter"
                           : "the system call filter cannot be built",
                  strerror(-rc));
    else
        log_info("seccomp: only the system calls that a running reactord needs are allowed");
    return rc;
}
