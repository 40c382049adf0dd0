/*
 * system/privileges: who reactord becomes. Each case runs in a process of its own, so one that
 * gives root up does not take it from the next; without root those that need it do nothing.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <linux/securebits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system/privileges.h"
#include "support/log_lines.h"
#include "support/suite.h"

#define UNKNOWN_ID "4200000001" /* no user database has this entry */

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_DEBUG);
}

GROUP(privileges, setup, NULL);

TEST(privileges, without_user_and_group_nothing_changes)
{
    struct privileges p;

    ck_assert_int_eq(privileges_lookup(&p, NULL, NULL), 0);
    ck_assert(!p.change);
    ck_assert_uint_eq(p.uid, geteuid());
    ck_assert_uint_eq(p.gid, getegid());
    ck_assert_int_eq(privileges_drop(&p), 0);
}

TEST(privileges, user_name_implies_its_primary_group)
{
    const struct passwd *nobody = getpwnam("nobody");
    struct privileges p;

    ck_assert_ptr_nonnull(nobody);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(privileges_lookup(&p, "nobody", NULL), 0);
    ck_assert(p.change);
    ck_assert_uint_eq(p.uid, nobody->pw_uid);
    ck_assert_uint_eq(p.gid, nobody->pw_gid);
    ck_assert_str_eq(p.login, "nobody");
}

TEST(privileges, number_with_a_passwd_entry_is_that_user)
{
    struct privileges p;

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(privileges_lookup(&p, "65534", NULL), 0);
    ck_assert_str_eq(p.login, "nobody");
    ck_assert_uint_eq(p.gid, getpwnam("nobody")->pw_gid);
}

TEST(privileges, number_without_a_passwd_entry_needs_a_group)
{
    struct privileges p;

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(privileges_lookup(&p, UNKNOWN_ID, NULL), -ENOENT);
    ck_assert_str_eq(log_lines_last(),
                     "user " UNKNOWN_ID
                     ": not in the password database, group unknown: set the option group");
    ck_assert_int_eq(privileges_lookup(&p, UNKNOWN_ID, "12345"), 0);
    ck_assert_uint_eq(p.uid, 4200000001u);
    ck_assert_uint_eq(p.gid, 12345);
    ck_assert_str_eq(p.login, "");
}

TEST(privileges, configured_group_replaces_the_primary_group)
{
    struct privileges p;

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(privileges_lookup(&p, "nobody", "daemon"), 0);
    ck_assert_uint_eq(p.gid, getgrnam("daemon")->gr_gid);
}

TEST(privileges, an_unknown_user_or_group_is_refused_by_name)
{
    struct privileges p;

    ck_assert_int_eq(privileges_lookup(&p, "no-such-user", NULL), -ENOENT);
    ck_assert_str_eq(log_lines_last(), "user no-such-user: no such user");
    ck_assert_int_eq(privileges_lookup(&p, NULL, "no-such-group"), -ENOENT);
    ck_assert_str_eq(log_lines_last(), "group no-such-group: no such group");
}

TEST(privileges, invalid_uid_4294967295_is_refused)
{
    struct privileges p;

    ck_assert_int_eq(privileges_lookup(&p, "4294967295", "0"), -ENOENT);
}

/* Become nobody, with a supplementary group that must not survive. */
static void become_nobody(void)
{
    const gid_t extra = 12345;
    struct privileges p;

    ck_assert_int_eq(setgroups(1, &extra), 0);
    ck_assert_int_eq(privileges_lookup(&p, "nobody", NULL), 0);
    ck_assert_int_eq(privileges_drop(&p), 0);
}

TEST(privileges, root_cannot_be_regained)
{
    const struct passwd *nobody = getpwnam("nobody");
    uid_t ruid, euid, suid;
    gid_t groups[32];
    int n;

    if (geteuid() != 0)
        return;
    become_nobody();
    ck_assert_int_eq(getresuid(&ruid, &euid, &suid), 0);
    ck_assert_uint_eq(ruid, nobody->pw_uid);
    ck_assert_uint_eq(euid, nobody->pw_uid);
    ck_assert_uint_eq(suid, nobody->pw_uid);
    ck_assert_uint_eq(getegid(), nobody->pw_gid);
    n = getgroups(ARRAY_LEN(groups), groups);
    for (int i = 0; i < n; i++)
        ck_assert_uint_ne(groups[i], 12345);
    ck_assert_int_eq(setuid(0), -1);
    ck_assert_int_eq(setgid(0), -1);
    ck_assert_int_ne(access("/etc/shadow", R_OK), 0);
}

TEST(privileges, unprivileged_process_may_only_keep_its_user)
{
    struct privileges p;

    if (geteuid() != 0)
        return;
    become_nobody();
    ck_assert_int_eq(privileges_lookup(&p, "nobody", NULL), 0);
    ck_assert(!p.change);
    ck_assert_int_eq(privileges_lookup(&p, "daemon", NULL), -EPERM);
    ck_assert_int_eq(privileges_lookup(&p, NULL, "daemon"), -EPERM);
}

#define UID 4200000001u
#define GID 12345u

static const struct {
    uid_t real_uid, uid;
    gid_t real_gid, gid;
} others[] = {{UID, 2, GID, GID}, {2, UID, GID, GID}, {UID, UID, GID, 2}, {UID, UID, 2, GID}};

TEST_EACH(privileges, process_started_for_another_user_or_group_is_refused, ARRAY_LEN(others))
{
    struct privileges p;

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(setresgid(others[_i].real_gid, others[_i].gid, others[_i].gid), 0);
    ck_assert_int_eq(setresuid(others[_i].real_uid, others[_i].uid, others[_i].uid), 0);
    ck_assert_int_eq(privileges_lookup(&p, UNKNOWN_ID, "12345"), -EPERM);
    EXPECT_LOG_LINES("only root can change to uid " UNKNOWN_ID " gid 12345; this process has", 1);
    /* the leak sanitizer traces this process, which needs these */
    ck_assert_int_eq(setresgid(others[_i].gid, others[_i].gid, others[_i].gid), 0);
    ck_assert_int_eq(setresuid(others[_i].uid, others[_i].uid, others[_i].uid), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
}

TEST(privileges, failed_drop_is_an_error)
{
    struct privileges p;

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(privileges_lookup(&p, "daemon", NULL), 0);
    become_nobody();
    ck_assert_int_eq(privileges_drop(&p), -EPERM);
}

TEST(privileges, ports_below_1024_can_still_be_bound)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(1)};
    int fd;

    if (geteuid() != 0)
        return;
    become_nobody();
    if (strcmp(log_lines_last(), "running as uid 65534 gid 65534 with CAP_NET_BIND_SERVICE") != 0)
        return; /* not permitted to this root */
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
}

TEST(privileges, groups_that_are_kept_are_not_looked_up_again)
{
    const gid_t kept = 4321;
    struct privileges p;
    gid_t now[2];

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(privileges_lookup(&p, "nobody", NULL), 0);
    ck_assert_int_eq(privileges_keep_groups(&p), 0);
    ck_assert_int_eq(setgroups(1, &kept), 0); /* another than the database has */
    ck_assert_int_eq(privileges_drop(&p), 0);
    ck_assert_uint_eq(geteuid(), p.uid);
    ck_assert_int_eq(getgroups(2, now), 1);
    ck_assert_uint_eq(now[0], kept);
}

/*
 * The bits are of one thread, and libc aborts when setresuid() is allowed to one and not to
 * another: the thread sanitizer's.
 */
#ifdef __SANITIZE_THREAD__
#define ANOTHER_THREAD true
#else
#define ANOTHER_THREAD false
#endif

TEST(privileges, capabilities_that_outlive_root_are_given_up)
{
    if (geteuid() != 0 || ANOTHER_THREAD ||
        prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
        return;
    become_nobody();
    ck_assert_int_eq(setuid(0), -1);
    ck_assert_int_ne(access("/etc/shadow", R_OK), 0);
}

TEST(privileges, drop_that_loses_net_bind_service_is_logged)
{
    if (geteuid() != 0 || ANOTHER_THREAD ||
        prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS_LOCKED, 0, 0, 0) < 0)
        return;
    become_nobody();
    ck_assert_str_eq(log_lines_last(),
                     "running as uid 65534 gid 65534 without CAP_NET_BIND_SERVICE");
}

TEST(privileges, a_number_without_an_entry_has_no_supplementary_groups)
{
    const gid_t extra[] = {4, 27};
    struct privileges p;
    gid_t groups[32];

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(setgroups(ARRAY_LEN(extra), extra), 0);
    ck_assert_int_eq(privileges_lookup(&p, UNKNOWN_ID, UNKNOWN_ID), 0);
    ck_assert_int_eq(privileges_drop(&p), 0);
    ck_assert_int_eq(getgroups(ARRAY_LEN(groups), groups), 1);
    ck_assert_uint_eq(groups[0], p.gid);
}

TEST(privileges, supplementary_groups_can_be_borrowed_and_restored)
{
    const gid_t extra[] = {4, 27};
    struct privileges_groups *ours;
    struct privileges p;
    gid_t groups[32];

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(setgroups(ARRAY_LEN(extra), extra), 0);
    ck_assert_int_eq(privileges_lookup(&p, UNKNOWN_ID, UNKNOWN_ID), 0);
    ck_assert_int_eq(privileges_take_groups(&ours, &p), 0);
    ck_assert_int_eq(getgroups(ARRAY_LEN(groups), groups), 1);
    ck_assert_uint_eq(getegid(), p.gid);
    privileges_return_groups(ours);
    ck_assert_int_eq(getgroups(ARRAY_LEN(groups), groups), 2);
    ck_assert_uint_eq(groups[0] + groups[1], 4 + 27);
    ck_assert_uint_eq(getegid(), 0);
}

TEST(privileges, programs_cannot_gain_privileges)
{
    ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
    privileges_set_no_new_privs();
    ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
}
