/*
 * system/syscall_filter: what the filter refuses and allows. Each case runs in a process of its
 * own. Sanitizers make calls that are refused: there no filter is loaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/syscall_filter.h"
#include "support/log_lines.h"
#include "support/sanitized.h"
#include "support/suite.h"

#define PAGE_BYTES 4096

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
}

GROUP(syscall_filter, setup, NULL);

static char *const no_arguments[] = {NULL};

static long run_program(void)
{
    return syscall(SYS_execve, "/bin/true", no_arguments, no_arguments);
}

static long run_program_by_descriptor(void)
{
    return syscall(SYS_execveat, 0, "", no_arguments, no_arguments, AT_EMPTY_PATH);
}

static long start_process(void)
{
    return syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, 0UL);
}

static long trace_process(void)
{
    return syscall(SYS_ptrace, 0 /* PTRACE_TRACEME */, 0, NULL, NULL);
}

static long read_other_memory(void)
{
    return syscall(SYS_process_vm_readv, getppid(), NULL, 0UL, NULL, 0UL, 0UL);
}

static long kill_parent(void)
{
    return syscall(SYS_kill, getppid(), 0);
}

static long signal_thread_of_parent(void)
{
    return syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static long change_user(void)
{
    return syscall(SYS_setresuid, getuid(), getuid(), getuid());
}

static long change_root(void)
{
    return syscall(SYS_chroot, "/");
}

static long mount_file_system(void)
{
    return syscall(SYS_mount, NULL, "/nowhere", NULL, 0UL, NULL);
}

static long new_namespace(void)
{
    return syscall(SYS_unshare, CLONE_NEWUSER);
}

static long enter_namespace(void)
{
    return syscall(SYS_setns, -1, CLONE_NEWUSER);
}

static long load_bpf(void)
{
    return syscall(SYS_bpf, 0, NULL, 0);
}

static long open_ring(void)
{
    return syscall(SYS_io_uring_setup, 1, NULL);
}

static long open_packet_socket(void)
{
    return syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0);
}

static long map_writable_code(void)
{
    return syscall(SYS_mmap, NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
}

static long make_data_code(void)
{
    void *data = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return syscall(SYS_mprotect, data, PAGE_BYTES, PROT_READ | PROT_EXEC);
}

static long raise_limit(void)
{
    struct rlimit limit = {.rlim_cur = 1, .rlim_max = 1};

    return syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, NULL);
}

static long raise_capability(void)
{
    return syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static long (*const refused[])(void) = {
    run_program,
    run_program_by_descriptor,
    start_process,
    trace_process,
    read_other_memory,
    kill_parent,
    signal_thread_of_parent,
    change_user,
    change_root,
    mount_file_system,
    new_namespace,
    enter_namespace,
    load_bpf,
    open_ring,
    open_packet_socket,
    map_writable_code,
    make_data_code,
    raise_limit,
    raise_capability,
};

/*
 * Call run(${i}) with the filter, in a process of its own: libcheck takes the end of a test by a
 * timer, which is refused.
 */
static void filtered(void (*run)(unsigned i), unsigned i)
{
    int status;
    pid_t pid;

    if (IF_SANITIZED(true, false))
        return;
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        ck_assert_int_eq(syscall_filter_load(), 0);
        run(i);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static void run_refused(unsigned i)
{
    errno = 0;
    ck_assert_int_eq(refused[i](), -1);
    ck_assert_int_eq(errno, EPERM);
}

TEST_EACH(syscall_filter, system_call_that_is_not_needed_fails, ARRAY_LEN(refused))
{
    filtered(run_refused, (unsigned)_i);
}

static void run_setns(unsigned i)
{
    (void)i;
    ck_assert_int_eq(syscall(SYS_setns, -1, CLONE_NEWNET), -1);
    ck_assert_int_eq(errno, EBADF);
}

/* Sockets in other network namespaces; see net/netns. */
TEST(syscall_filter, network_namespaces_can_be_entered)
{
    filtered(run_setns, 0);
}

static void run_clone3(unsigned i)
{
    (void)i;
    ck_assert_int_eq(syscall(SYS_clone3, NULL, 0UL), -1);
    ck_assert_int_eq(errno, ENOSYS);
}

/* With ENOSYS the C library falls back to clone(2). */
TEST(syscall_filter, process_cannot_be_started_by_clone3)
{
    filtered(run_clone3, 0);
}

/* A filter before ours, which refuses the calls that load a filter. */
static void refuse_filters(void)
{
    const struct scmp_arg_cmp set = SCMP_A0_64(SCMP_CMP_EQ, PR_SET_SECCOMP, 0);
    scmp_filter_ctx first = seccomp_init(SCMP_ACT_ALLOW);

    ck_assert_ptr_nonnull(first);
    ck_assert_int_eq(seccomp_rule_add(first, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(prctl), 1, set), 0);
    ck_assert_int_eq(seccomp_rule_add(first, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(seccomp), 0), 0);
    ck_assert_int_eq(seccomp_load(first), 0);
    seccomp_release(first);
}

TEST(syscall_filter, kernel_error_of_the_filter_is_reported)
{
    if (IF_SANITIZED(true, false))
        return;
    refuse_filters();
    ck_assert_int_eq(syscall_filter_load(), -EACCES);
    EXPECT_LOG_LINES("seccomp: the kernel refuses the system call filter: Permission denied", 1);
}

static void *run_thread(void *name)
{
    prctl(PR_SET_NAME, name);
    return name;
}

static void run_allowed(unsigned i)
{
    static char name[] = "work";
    pthread_t thread;
    void *result;
    int fd;

    (void)i;
    ck_assert_int_eq(pthread_create(&thread, NULL, run_thread, name), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, name);
    for (int family = AF_UNIX; family <= AF_INET; family++) {
        fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_ne(mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), MAP_FAILED);
    close(fd);
}

TEST(syscall_filter, threads_sockets_files_and_code_of_libraries_are_allowed)
{
    filtered(run_allowed, 0);
}

TEST_ABORTS(syscall_filter, abort_still_ends_the_process)
{
    if (IF_SANITIZED(false, true))
        ck_assert_int_eq(syscall_filter_load(), 0);
    abort();
}
