/*
 * system/safe_open: what a user can change root does not open. Without root there is nothing to
 * ask.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system/privileges.h"
#include "system/safe_open.h"
#include "support/log_lines.h"
#include "support/suite.h"

#define USER   65534
#define APPEND (O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC)

/*
 * ${dir} is root's; within it `mine` and `precious` are root's, `theirs` is the user's and `all` is
 * as /tmp is.
 */
static char dir[] = "/tmp/reactord-test-safe-XXXXXX";
static struct privileges user;
static int fd = -1;
static bool as_root;

static const char *at(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % ARRAY_LEN(paths)];

    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void make_dir(const char *name, mode_t mode, uid_t owner)
{
    ck_assert_int_eq(mkdir(at(name), 0700), 0);
    ck_assert_int_eq(chmod(at(name), mode), 0);
    ck_assert_int_eq(chown(at(name), owner, owner), 0);
}

static void make_file(const char *name)
{
    int file = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, "precious", 8), 8);
    close(file);
}

static void setup(void)
{
    if (geteuid() != 0)
        return;
    log_lines_capture(LOG_LEVEL_DEBUG);
    umask(022);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chmod(dir, 0755), 0);
    make_dir("mine", 0755, 0);
    make_dir("theirs", 0755, USER);
    make_dir("all", 01777, 0);
    make_dir("open", 0777, 0);
    make_file("mine/precious");
    ck_assert_int_eq(privileges_lookup(&user, "65534", "65534"), 0);
}

static void teardown(void)
{
    char command[64];

    if (fd >= 0)
        close(fd);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static int try(const char *path, int flags)
{
    const struct safe_open how = {.path = path, .flags = flags, .mode = 0640, .user = &user};

    return safe_open(&fd, &as_root, &how);
}

static uid_t owner(void)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    return st.st_uid;
}

/* Of the process, as it was before. */
static void assert_root(void)
{
    gid_t groups[64];

    ck_assert_uint_eq(geteuid(), 0);
    ck_assert_uint_eq(getegid(), 0);
    ck_assert_int_ge(getgroups(ARRAY_LEN(groups), groups), 0);
}

static void assert_refused(const char *path)
{
    struct stat st;

    ck_assert_msg(try(path, APPEND) == -EACCES, "%s", path);
    ck_assert_ptr_nonnull(
        strstr(log_lines_last(), "not opened as root: uid 65534 could have put it"));
    ck_assert_int_eq(stat(at("mine/precious"), &st), 0);
    ck_assert_int_eq(st.st_size, 8);
    assert_root();
}

GROUP(as_root, setup, teardown);

TEST(as_root, a_file_in_the_directory_of_the_user_is_opened_as_the_user)
{
    ck_assert_int_eq(try(at("theirs/log"), APPEND), 0);
    ck_assert(!as_root);
    ck_assert_uint_eq(owner(), USER);
    assert_root();
}

TEST(as_root, a_file_in_the_directory_of_root_is_opened_as_root)
{
    ck_assert_int_eq(try(at("mine/log"), APPEND | O_EXCL), 0);
    ck_assert(as_root);
    ck_assert_uint_eq(owner(), 0);
    close(fd);
    ck_assert_int_eq(try(at("mine/log"), APPEND | O_EXCL), -EEXIST);
    ck_assert_int_eq(try(at("mine/precious"), APPEND), 0);
    assert_root();
}

static const char *const links[] = {"theirs/log", "all/log", "open/log"};

TEST_EACH(as_root, a_symbolic_link_of_the_user_is_refused, ARRAY_LEN(links))
{
    ck_assert_int_eq(symlink(at("mine/precious"), at(links[_i])), 0);
    assert_refused(at(links[_i]));
    ck_assert_int_eq(unlink(at(links[_i])), 0);
    ck_assert_int_eq(symlink(at("mine/new"), at(links[_i])), 0);
    assert_refused(at(links[_i]));
    ck_assert_int_ne(access(at("mine/new"), F_OK), 0);
}

/* What the user does between the look at `all/log` and its open(2). */
static void (*meanwhile)(const char *at, const char *precious);

/* In front of the C library's. */
int openat(int at_fd, const char *name, int flags, ...)
{
    void (*act)(const char *, const char *) = flags & O_PATH ? NULL : meanwhile;
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (act) {
        meanwhile = NULL;
        act(at("all/log"), at("mine/precious"));
    }
    return (int)syscall(SYS_openat, at_fd, name, flags, mode);
}

static void link_symbolically(const char *path, const char *precious)
{
    ck_assert_int_eq(symlink(precious, path), 0);
}

static void link_hard(const char *path, const char *precious)
{
    ck_assert_int_eq(link(precious, path), 0);
}

static void replace_by_link(const char *path, const char *precious)
{
    ck_assert_int_eq(unlink(path), 0); /* root rotates it */
    ck_assert_int_eq(symlink(precious, path), 0);
}

static void replace_by_hard_link(const char *path, const char *precious)
{
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(link(precious, path), 0);
}

static const struct {
    void (*meanwhile)(const char *at, const char *precious);
    bool there;
    int error;
} races[] = {{link_symbolically, false, -EEXIST},
             {link_hard, false, -EEXIST},
             {replace_by_link, true, -ELOOP},
             {replace_by_hard_link, true, -EACCES}};

TEST_EACH(as_root, link_created_between_check_and_open_is_refused, ARRAY_LEN(races))
{
    if (races[_i].there)
        make_file("all/log");
    make_dir("closed", 0700, 0);
    ck_assert_int_eq(symlink(at("all/log"), at("closed/log")), 0); /* only root may follow it */
    meanwhile = races[_i].meanwhile;
    ck_assert_int_eq(try(at("closed/log"), APPEND), races[_i].error);
    ck_assert(as_root);
    ck_assert_ptr_null(meanwhile);
    assert_root();
}

TEST_EACH(as_root, a_hard_link_of_the_user_is_refused, ARRAY_LEN(links))
{
    ck_assert_int_eq(link(at("mine/precious"), at(links[_i])), 0);
    assert_refused(at(links[_i]));
}

TEST(as_root, link_in_a_parent_directory_is_refused)
{
    ck_assert_int_eq(symlink(at("mine"), at("theirs/way")), 0);
    assert_refused(at("theirs/way/precious"));
    ck_assert_int_eq(symlink(at("theirs/way"), at("mine/way")), 0);
    assert_refused(at("mine/way/precious"));
    assert_refused(at("theirs/../mine/../theirs/way/precious"));
}

TEST(as_root, directory_of_the_user_is_refused_even_without_write_permission)
{
    make_file("theirs/file");
    ck_assert_int_eq(chmod(at("theirs"), 0555), 0);
    assert_refused(at("theirs/file"));
}

TEST(as_root, links_of_root_are_followed)
{
    ck_assert_int_eq(symlink("precious", at("mine/near")), 0);
    ck_assert_int_eq(symlink(at("mine/near"), at("far")), 0);
    ck_assert_int_eq(try(at("far"), APPEND), 0);
    close(fd);
    ck_assert_int_eq(try(at("far"), APPEND | O_NOFOLLOW), -ELOOP);
    ck_assert_int_eq(symlink("new", at("mine/to_new")), 0);
    ck_assert_int_eq(try(at("mine/to_new"), APPEND), 0);
    ck_assert_int_eq(access(at("mine/new"), F_OK), 0);
    close(fd);
    ck_assert_int_eq(symlink("round", at("mine/round")), 0);
    ck_assert_int_eq(try(at("mine/round"), APPEND), -ELOOP);
    fd = -1;
}

/* Each but the first names the one before it. */
static const char *chain_of_links(unsigned n)
{
    static char last[128];
    char target[128];
    struct stat st;

    snprintf(last, sizeof(last), "%s", at("mine/precious"));
    for (unsigned i = 1; i <= n; i++) {
        char name[32];

        snprintf(target, sizeof(target), "%s", last);
        snprintf(name, sizeof(name), "closed/link%u", i);
        snprintf(last, sizeof(last), "%s", at(name));
        if (lstat(last, &st) < 0)
            ck_assert_int_eq(symlink(target, last), 0);
    }
    return last;
}

/* Where the user cannot look: its own open(2) is denied before it has counted any. */
TEST(as_root, as_many_links_of_root_are_followed_as_by_the_kernel)
{
    make_dir("closed", 0700, 0);
    ck_assert_int_eq(try(chain_of_links(40), APPEND), 0);
    ck_assert(as_root);
    close(fd);
    fd = -1;
    ck_assert_int_eq(open(chain_of_links(41), O_WRONLY | O_CLOEXEC), -1);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert_int_eq(try(chain_of_links(41), APPEND), -ELOOP);
    assert_root();
}

/* What a group may do does not matter to a user who is not in it: it is ours that is not asked. */
TEST(as_root, groups_of_root_are_not_used_for_the_user)
{
    const gid_t extra = 12345;

    ck_assert_int_eq(setgroups(1, &extra), 0);
    make_dir("group", 0770, 0);
    ck_assert_int_eq(chown(at("group"), 0, extra), 0);
    ck_assert_int_eq(try(at("group/new"), APPEND), 0);
    ck_assert(as_root); /* with ours the user could have created it */
    ck_assert_uint_eq(owner(), 0);
}

TEST(as_root, file_of_root_in_a_world_writable_directory_is_taken)
{
    make_file("all/log");
    ck_assert_int_eq(try(at("all/log"), O_WRONLY | O_APPEND | O_CLOEXEC), 0);
    ck_assert(as_root);
}

TEST(as_root, an_open_file_is_opened_by_its_name_in_dev)
{
    char byte;
    int pipe_fds[2];

    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    ck_assert_int_eq(dup2(pipe_fds[1], STDOUT_FILENO), STDOUT_FILENO);
    ck_assert_int_eq(try("/dev/stdout", APPEND | O_NONBLOCK), 0);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
}

TEST(as_root, a_fifo_of_the_user_is_opened_as_the_user)
{
    int reader;

    ck_assert_int_eq(mkfifo(at("theirs/fifo"), 0600), 0);
    ck_assert_int_eq(chown(at("theirs/fifo"), USER, USER), 0);
    reader = open(at("theirs/fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(try(at("theirs/fifo"), APPEND | O_NONBLOCK), 0);
    ck_assert(!as_root);
    close(reader);
}

TEST(as_root, name_of_maximum_length_is_opened)
{
    char path[sizeof(dir) + 8 + NAME_MAX + 1];
    size_t len = (size_t)snprintf(path, sizeof(path), "%s/mine/", dir);

    memset(path + len, 'n', NAME_MAX + 1);
    path[len + NAME_MAX] = '\0';
    ck_assert_int_eq(try(path, APPEND), 0);
    ck_assert(as_root);
}

TEST(as_root, missing_file_or_directory_has_its_own_error)
{
    ck_assert_int_eq(try(at("mine/none"), O_WRONLY | O_CLOEXEC), -ENOENT);
    ck_assert_int_eq(try(at("none/log"), APPEND), -ENOENT);
    ck_assert_int_eq(try(at("mine"), APPEND), -EISDIR);
    ck_assert_int_eq(try(at("mine/precious/log"), APPEND), -ENOTDIR);
    fd = -1;
}

TEST(as_root, without_another_user_a_path_is_opened_directly)
{
    const struct privileges same = {.uid = geteuid(), .gid = getegid()};

    ck_assert_int_eq(symlink(at("mine/precious"), at("theirs/log")), 0);
    user = same;
    ck_assert_int_eq(try(at("theirs/log"), APPEND), 0);
    ck_assert(!as_root);
}
