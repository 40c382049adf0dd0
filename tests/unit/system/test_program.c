/* system/program: by which path a program is started again. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/must.h"
#include "system/program.h"
#include "support/suite.h"

static char dir[] = "/tmp/reactord-test-program-XXXXXX";
static char path[64], cwd[PATH_MAX];
static struct program program;

static void setup(void)
{
    int fd;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
    snprintf(path, sizeof(path), "%s/tool", dir);
    fd = creat(path, 0755);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void teardown(void)
{
    program_close(&program);
    ck_assert_int_eq(chdir(cwd), 0);
    unlink(path);
    rmdir(dir);
}

static const char *find(const char *name)
{
    char *argv[] = {(char *)name, NULL};

    ck_assert_int_eq(program_open(&program, argv), 0);
    ck_assert_ptr_eq(program.argv, argv);
    return program.path;
}

GROUP(program, setup, teardown);

TEST(program, an_absolute_path_stays)
{
    ck_assert_str_eq(find("/nowhere/./tool"), "/nowhere/./tool");
}

TEST(program, a_relative_path_is_made_absolute)
{
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_str_eq(find("./tool") + strlen(dir), "/./tool");
}

TEST(program, name_is_searched_in_path_as_the_shell_does)
{
    char list[128];

    snprintf(list, sizeof(list), "/nowhere::%s:/bin", dir);
    ck_assert_int_eq(setenv("PATH", list, 1), 0);
    ck_assert_str_eq(find("tool"), path);
}

TEST(program, an_empty_entry_is_the_working_directory)
{
    ck_assert_int_eq(setenv("PATH", "/nowhere:", 1), 0);
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_str_eq(find("tool"), path);
}

static const char *const nameless[] = {"", "not-in-any-directory", NULL};

TEST_EACH(program, program_without_a_path_is_found_by_proc_self_exe, ARRAY_LEN(nameless))
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    ck_assert_int_gt(len, 0);
    self[len] = '\0';
    ck_assert_str_eq(find(nameless[_i]), self);
}
