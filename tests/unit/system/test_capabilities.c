/*
 * system/capabilities: what is left of root's. Each case runs in a process of its own; without root
 * those that need it do nothing.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/capabilities.h"
#include "support/suite.h"

#define BIND (1ull << CAP_NET_BIND_SERVICE)

GROUP(capabilities, NULL, NULL);

/* A set of this process, such as CapEff. */
static unsigned long long set(const char *name)
{
    char line[128];
    unsigned long long bits = 0;
    FILE *f = fopen("/proc/thread-self/status", "r");

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, name, strlen(name)) == 0)
            bits = strtoull(line + strlen(name) + 1, NULL, 16);
    fclose(f);
    return bits;
}

static bool may_bind(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), rc;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rc = bind(fd, (struct sockaddr *)&a, sizeof(a));
    if (rc < 0)
        ck_assert(errno == EACCES || errno == EADDRINUSE);
    rc = rc < 0 ? errno : 0;
    close(fd);
    return rc != EACCES;
}

TEST(capabilities, only_net_bind_service_is_kept_for_another_user)
{
    unsigned kept;

    if (geteuid() != 0 || (set("CapPrm") & BIND) == 0)
        return;
    ck_assert_int_eq(capabilities_survive_user(true), 0);
    ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_uint_eq(set("CapEff"), 0);
    ck_assert_int_eq(capabilities_reduce(0, &kept), 0);
    ck_assert_int_eq(capabilities_survive_user(false), 0);
    ck_assert_uint_eq(kept, BIND);
    ck_assert_uint_eq(set("CapEff"), BIND);
    ck_assert_uint_eq(set("CapPrm"), BIND);
    ck_assert_uint_eq(set("CapInh"), 0);
    ck_assert_uint_eq(set("CapAmb"), 0);
    ck_assert(may_bind(1));
    ck_assert_int_eq(setuid(0), -1);
}

TEST(capabilities, missing_capability_is_not_kept)
{
    unsigned kept;

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_int_eq(capabilities_reduce(0, &kept), 0);
    ck_assert_uint_eq(kept, 0);
    ck_assert_uint_eq(set("CapPrm"), 0);
}

TEST(capabilities, locked_keep_caps_is_an_error)
{
    if (geteuid() != 0 || prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS_LOCKED, 0, 0, 0) < 0)
        return;
    ck_assert_int_eq(capabilities_survive_user(true), -EPERM);
}

/* From now on capset(2) does nothing but return ${error}; false if that cannot be done. */
static bool filter_capset_of_any(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_capset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = ARRAY_LEN(code), .filter = code};

    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

static bool filter_capset(int error)
{
    return geteuid() == 0 && filter_capset_of_any(error);
}

TEST(capabilities, capabilities_left_by_the_kernel_are_reported)
{
    unsigned kept;

    if (filter_capset(0))
        ck_assert_int_eq(capabilities_reduce(0, &kept), -EPERM);
}

TEST(capabilities, failed_capset_is_an_error)
{
    unsigned kept;

    if (!filter_capset(EACCES) || (set("CapPrm") & BIND) == 0)
        return;
    ck_assert_int_eq(capabilities_reduce(0, &kept), -EACCES);
    ck_assert_int_eq(capabilities_survive_exec(), -EACCES);
}

TEST(capabilities, ambient_capability_is_not_set_again)
{
    if (geteuid() != 0 || (set("CapPrm") & BIND) == 0)
        return;
    ck_assert_int_eq(capabilities_survive_exec(), 0);
    ck_assert_uint_eq(set("CapAmb"), BIND);
    if (filter_capset(EACCES))
        ck_assert_int_eq(capabilities_survive_exec(), 0);
}

/* The effective set of a program that is executed now. */
static unsigned long long set_of_a_program(bool survive)
{
    char line[64] = "";
    int ends[2], status;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        if (!survive || capabilities_survive_exec() == 0)
            execlp("grep", "grep", "CapEff", "/proc/self/status", NULL);
        _exit(1);
    }
    close(ends[1]);
    ck_assert_int_gt(read(ends[0], line, sizeof(line) - 1), 0);
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return strtoull(line + strlen("CapEff:"), NULL, 16);
}

TEST(capabilities, ambient_capability_is_inherited_by_a_program_on_request)
{
    unsigned kept;

    if (geteuid() != 0 || (set("CapPrm") & BIND) == 0)
        return;
    ck_assert_int_eq(capabilities_survive_user(true), 0);
    ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_int_eq(capabilities_reduce(0, &kept), 0);
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_uint_eq(set_of_a_program(false), 0);
    ck_assert_uint_eq(set_of_a_program(true), BIND);
}

TEST(capabilities, capabilities_of_socket_options_are_kept_on_request_and_inherited)
{
    const unsigned long long admin = 1ull << CAP_NET_ADMIN;
    unsigned kept;

    if (geteuid() != 0 || (set("CapPrm") & (BIND | admin)) != (BIND | admin))
        return;
    ck_assert_int_eq(capabilities_survive_user(true), 0);
    ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_int_eq(capabilities_reduce(1U << CAP_NET_ADMIN, &kept), 0);
    ck_assert_uint_eq(kept, BIND | admin);
    ck_assert_uint_eq(set("CapEff"), BIND | admin);
    ck_assert_uint_eq(set_of_a_program(true), BIND | admin);
}

TEST(capabilities, missing_capability_is_not_inherited_by_a_program)
{
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_uint_eq(set_of_a_program(true), 0);
}

/* As a process after an upgrade: not root, with CAP_NET_ADMIN and CAP_NET_RAW in all sets. */
static bool become_replacement(unsigned long long bits)
{
    unsigned kept;

    if (geteuid() != 0 || (set("CapPrm") & (BIND | bits)) != (BIND | bits))
        return false;
    ck_assert_int_eq(capabilities_survive_user(true), 0);
    ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_int_eq(capabilities_reduce((unsigned)bits, &kept), 0);
    ck_assert_int_eq(capabilities_survive_exec(), 0);
    ck_assert_uint_eq(set("CapAmb"), BIND | bits);
    return true;
}

TEST(capabilities, replacement_drops_what_its_configuration_does_not_need)
{
    static const char *const sets[] = {"CapPrm", "CapEff", "CapInh"};
    const unsigned long long admin = 1ull << CAP_NET_ADMIN, raw = 1ull << CAP_NET_RAW;

    if (!become_replacement(admin | raw))
        return;
    ck_assert_int_eq(capabilities_shed((unsigned)raw), 0);
    for (unsigned i = 0; i < ARRAY_LEN(sets); i++)
        ck_assert_uint_eq(set(sets[i]), BIND | raw);
    ck_assert_uint_eq(set("CapAmb"), 0);
    ck_assert_uint_eq(set_of_a_program(false), 0);
    ck_assert_uint_eq(set_of_a_program(true), BIND | raw);
    ck_assert_int_eq(capabilities_shed(0), 0);
    for (unsigned i = 0; i < ARRAY_LEN(sets); i++)
        ck_assert_uint_eq(set(sets[i]), BIND);
}

TEST(capabilities, replacement_without_socket_options_calls_no_capset)
{
    if (!become_replacement(0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        !filter_capset_of_any(EACCES))
        return;
    ck_assert_int_eq(capabilities_shed(0), 0);
    ck_assert_uint_eq(set("CapAmb"), 0);
    ck_assert_int_eq(capabilities_survive_exec(), 0);
    ck_assert_uint_eq(set("CapAmb"), BIND);
}
