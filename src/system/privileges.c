#include "system/privileges.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parse.h"
#include "system/capabilities.h"

/* (uid_t)-1 means "keep" to setresuid(2). */
#define ID_MAX (UINT32_MAX - 1)

/* Log and return a failed lookup. ${error}: errno of getpwnam(3) or getgrnam(3); 0: no entry. */
static int privileges_lookup_failed(const char *what, const char *name, int error)
{
    if (error == 0 || error == ENOENT || error == ESRCH) {
        log_error("%s %s: no such %s", what, name, what);
        return -ENOENT;
    }
    log_error("%s %s: cannot be looked up: %s", what, name, strerror(error));
    return -error;
}

/* Look up ${user}. Set ${has_gid} if an entry gives the primary group. */
static int privileges_lookup_user(struct privileges *p, bool *has_gid, const char *user)
{
    const struct passwd *entry;
    uint64_t number;
    bool is_number;

    is_number = parse_uint(&number, user, ID_MAX) == 0;
    errno = 0;
    entry = getpwnam(user);
    if (!entry && is_number)
        entry = getpwuid((uid_t)number);
    if (!entry && !is_number)
        return privileges_lookup_failed("user", user, errno);
    if (!entry) { /* a numeric user needs no entry */
        p->uid = (uid_t)number;
        return 0;
    }
    p->uid = entry->pw_uid;
    p->gid = entry->pw_gid;
    snprintf(p->login, sizeof(p->login), "%s", entry->pw_name);
    *has_gid = true;
    return 0;
}

static int privileges_lookup_group(struct privileges *p, const char *group)
{
    const struct group *entry;
    uint64_t number;
    bool is_number;

    is_number = parse_uint(&number, group, ID_MAX) == 0;
    errno = 0;
    entry = getgrnam(group);
    if (!entry && !is_number)
        return privileges_lookup_failed("group", group, errno);
    p->gid = entry ? entry->gr_gid : (gid_t)number;
    return 0;
}

static int privileges_check_unprivileged(struct privileges *p)
{
    if (p->uid != geteuid() || p->uid != getuid() || p->gid != getegid() || p->gid != getgid()) {
        log_error("only root can change to uid %ld gid %ld; this process has uid %ld gid %ld, "
                  "effective uid %ld gid %ld",
                  (long)p->uid, (long)p->gid, (long)getuid(), (long)getgid(), (long)geteuid(),
                  (long)getegid());
        return -EPERM;
    }
    p->change = false;
    return 0;
}

int privileges_lookup(struct privileges *out, const char *user, const char *group)
{
    struct privileges p = {.change = user || group, .uid = geteuid(), .gid = getegid()};
    bool has_gid = !user;
    int rc = 0;

    if (user)
        rc = privileges_lookup_user(&p, &has_gid, user);
    if (rc == 0 && group)
        rc = privileges_lookup_group(&p, group);
    if (rc == 0 && !group && !has_gid) {
        log_error("user %s: not in the password database, group unknown: set the option group",
                  user);
        rc = -ENOENT;
    }
    if (rc == 0 && p.change && geteuid() != 0)
        rc = privileges_check_unprivileged(&p);
    if (rc == 0)
        *out = p;
    return rc;
}

static int privileges_drop_failed(const char *what)
{
    int error = errno;

    log_error("%s: %s", what, strerror(error));
    return -error;
}

static int privileges_verify_dropped(const struct privileges *p)
{
    uid_t ruid, euid, suid;
    gid_t rgid, egid, sgid;
    bool regained;

    MUST(getresuid(&ruid, &euid, &suid) == 0);
    MUST(getresgid(&rgid, &egid, &sgid) == 0);
    regained = ruid != p->uid || euid != p->uid || suid != p->uid || rgid != p->gid ||
               egid != p->gid || sgid != p->gid;
    if (p->uid != 0)
        regained = regained || setresuid((uid_t)-1, 0, (uid_t)-1) == 0 ||
                   (p->gid != 0 && setresgid((gid_t)-1, 0, (gid_t)-1) == 0);
    if (!regained)
        return 0;
    log_error("root's privileges could be regained; not starting");
    return -EPERM;
}

static int privileges_set_groups(const struct privileges *p)
{
    if (p->has_groups)
        return 0;
    if (p->login[0] != '\0' ? initgroups(p->login, p->gid) < 0 : setgroups(1, &p->gid) < 0)
        return privileges_drop_failed("supplementary groups cannot be set");
    return 0;
}

int privileges_keep_groups(struct privileges *p)
{
    int rc = privileges_set_groups(p);

    p->has_groups = rc == 0;
    return rc;
}

struct privileges_groups {
    gid_t gid;
    int n;
    gid_t list[];
};

int privileges_take_groups(struct privileges_groups **out, const struct privileges *p)
{
    int n = getgroups(0, NULL);
    struct privileges_groups *ours =
        n < 0 ? NULL : malloc(sizeof(*ours) + (size_t)n * sizeof(ours->list[0]));
    int rc;

    if (!ours)
        return -ENOMEM;
    ours->gid = getegid();
    ours->n = getgroups(n, ours->list);
    rc = ours->n < 0 ? -errno : privileges_set_groups(p);
    if (rc == 0 && setegid(p->gid) < 0)
        rc = privileges_drop_failed("the group cannot be changed");
    if (rc < 0) {
        privileges_return_groups(ours);
        return rc;
    }
    *out = ours;
    return 0;
}

void privileges_return_groups(struct privileges_groups *ours)
{
    MUST(setegid(ours->gid) == 0);
    if (ours->n >= 0)
        MUST(setgroups((size_t)ours->n, ours->list) == 0);
    free(ours);
}

void privileges_set_no_new_privs(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        log_warning("cannot set PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
}

static int privileges_set_ids(const struct privileges *p)
{
    int rc = privileges_set_groups(p);

    if (rc < 0)
        return rc;
    if (setresgid(p->gid, p->gid, p->gid) < 0)
        return privileges_drop_failed("the group cannot be changed");
    if (setresuid(p->uid, p->uid, p->uid) < 0)
        return privileges_drop_failed("the user cannot be changed");
    return 0;
}

/* Become the user of ${p}, who is not root, keeping only CAP_NET_BIND_SERVICE and p->extra. */
static int privileges_drop_root(const struct privileges *p)
{
    bool survive = capabilities_survive_user(true) == 0;
    unsigned kept = 0;
    int rc = privileges_set_ids(p);

    if (rc < 0)
        return rc;
    rc = capabilities_reduce(p->extra, &kept);
    if (rc == 0 && survive)
        rc = capabilities_survive_user(false);
    if (rc < 0) {
        errno = -rc;
        return privileges_drop_failed("the capabilities of root cannot be dropped");
    }
    if (privileges_verify_dropped(p) < 0)
        return -EPERM;
    log_info("running as uid %ld gid %ld %s CAP_NET_BIND_SERVICE%s%s%s", (long)p->uid, (long)p->gid,
             kept & CAPABILITIES_BIND ? "with" : "without",
             kept & 1U << CAP_NET_ADMIN ? ", with CAP_NET_ADMIN" : "",
             kept & 1U << CAP_NET_RAW ? ", with CAP_NET_RAW" : "",
             kept & 1U << CAP_SYS_ADMIN ? ", with CAP_SYS_ADMIN" : "");
    return 0;
}

/* The process before an upgrade, or the service manager, may have given more than is needed. */
static void privileges_shed(const struct privileges *p)
{
    int rc = geteuid() == 0 ? 0 : capabilities_shed(p->extra);

    if (rc < 0)
        log_warning("capabilities that the configuration does not need cannot be dropped: %s",
                    strerror(-rc));
}

int privileges_drop(const struct privileges *p)
{
    int rc;

    if (!p->change) {
        privileges_shed(p);
        return 0;
    }
    if (p->uid != 0)
        return privileges_drop_root(p);
    rc = privileges_set_ids(p);
    if (rc == 0)
        rc = privileges_verify_dropped(p);
    if (rc == 0)
        log_info("running as uid %ld gid %ld", (long)p->uid, (long)p->gid);
    return rc;
}
