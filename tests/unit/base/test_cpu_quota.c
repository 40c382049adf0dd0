/*
 * base/cpu_quota: limits of both kinds of control groups, the lowest one on the path, and what is
 * no limit.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu_quota.h"
#include "support/suite.h"

static char dir[] = "/tmp/cpu_quota.XXXXXX";

static void put(const char *path, const char *text)
{
    char full[PATH_MAX];
    FILE *f;

    snprintf(full, sizeof(full), "%s/%s", dir, path);
    f = fopen(full, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void make_dir(const char *path)
{
    char full[PATH_MAX];

    snprintf(full, sizeof(full), "%s/%s", dir, path);
    ck_assert_int_eq(mkdir(full, 0700), 0);
}

static void setup(void)
{
    snprintf(dir, sizeof(dir), "/tmp/cpu_quota.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    make_dir("v1");
    make_dir("v1/a");
    make_dir("v1/a/b");
    make_dir("v2");
    make_dir("v2/a");
    make_dir("v2/a/b");
}

static void teardown(void)
{
    char command[PATH_MAX];

    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

/* The process is in ${group}, and the hierarchies are mounted from ${root} on. */
static void mount_groups(const char *group, const char *root)
{
    char text[4 * PATH_MAX];

    snprintf(text, sizeof(text), "7:cpuset:/other\n4:cpuacct,cpu:%s\n0::%s\n", group, group);
    put("cgroup", text);
    snprintf(text, sizeof(text),
             "20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
             "31 20 0:30 / %s/none rw shared:9 - cgroup cgroup rw,cpuset\n"
             "32 20 0:31 %s %s/v1 rw,relatime shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
             "33 20 0:32 %s %s/v2 rw - cgroup2 cgroup2 rw,nsdelegate\n",
             dir, root, dir, root, dir);
    put("mountinfo", text);
}

static void limit_v1(const char *group, const char *quota, const char *period)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "v1%s/cpu.cfs_quota_us", group);
    put(path, quota);
    snprintf(path, sizeof(path), "v1%s/cpu.cfs_period_us", group);
    put(path, period);
}

/* Threads at two for each CPU; 0: no limit. */
static unsigned threads(void)
{
    struct cpu_quota q = cpu_quota_read(dir);
    unsigned n = cpu_quota_threads(&q, 2);

    return n == UINT_MAX ? 0 : n;
}

/*
 * A group, the root of what is mounted, limits there ("QUOTA PERIOD", or in the file cpu.max of
 * ${where}) and the threads that they allow.
 */
static const struct {
    const char *group, *root;
    const char *v1_quota, *v1_period;
    const char *where, *max;
    unsigned threads;
} limits[] = {
    /* v1 has a quota and a period; -1 is no limit */
    {"/a", "/", "100000\n", "100000\n", NULL, NULL, 2},
    {"/a", "/", "200000\n", "50000\n", NULL, NULL, 8},
    {"/a", "/", "-1\n", "100000\n", NULL, NULL, 0},
    /* v2 has both in one line; max is no limit */
    {"/a", "/", NULL, NULL, "v2/a/cpu.max", "300000 100000\n", 6},
    {"/a", "/", NULL, NULL, "v2/a/cpu.max", "max 100000\n", 0},
    /* parts of a processor are rounded up */
    {"/a", "/", NULL, NULL, "v2/a/cpu.max", "150000 100000\n", 3},
    {"/a", "/", NULL, NULL, "v2/a/cpu.max", "50000 100000\n", 1},
    {"/a", "/", NULL, NULL, "v2/a/cpu.max", "1000 100000\n", 1},
    {"/a", "/", NULL, NULL, "v2/a/cpu.max", "101000 100000\n", 3},
    /* of both kinds the lower limit counts */
    {"/a/b", "/", "100000\n", "100000\n", "v2/a/b/cpu.max", "200000 100000\n", 2},
    {"/a/b", "/", "100000\n", "100000\n", "v2/a/b/cpu.max", "20000 100000\n", 1},
    /* in a container: the file system shows its own group, the file its path on the host */
    {"/docker/1/a", "/docker/1", NULL, NULL, "v2/a/cpu.max", "100000 100000\n", 2},
    {"/docker/1", "/docker/1", NULL, NULL, "v2/cpu.max", "200000 100000\n", 4},
    /* a group that is not below what is mounted has the limit of the mount */
    {"/docker/12", "/docker/1", NULL, NULL, "v2/cpu.max", "100000 100000\n", 2},
    /* what cannot be read is no limit */
    {"/gone", "/", NULL, NULL, NULL, NULL, 0},
    {"/gone", "/", NULL, NULL, "v2/cpu.max", "", 0},
    {"/gone", "/", NULL, NULL, "v2/cpu.max", "100000 0\n", 0},
};

GROUP(quota, setup, teardown);

TEST_EACH(quota, the_limit_of_a_group_gives_the_number_of_threads, ARRAY_LEN(limits))
{
    mount_groups(limits[_i].group, limits[_i].root);
    if (limits[_i].v1_quota)
        limit_v1("/a", limits[_i].v1_quota, limits[_i].v1_period);
    if (limits[_i].where)
        put(limits[_i].where, limits[_i].max);
    ck_assert_uint_eq(threads(), limits[_i].threads);
}

/* ${_i}: which of the three groups has the lowest limit. */
TEST_EACH(quota, lowest_quota_of_nested_groups_counts, 3)
{
    static const char *const files[] = {"v2/cpu.max", "v2/a/cpu.max", "v2/a/b/cpu.max"};

    mount_groups("/a/b", "/");
    for (int i = 0; i < 3; i++)
        put(files[i], i == _i ? "100000 100000\n" : "80000 20000\n");
    ck_assert_uint_eq(threads(), 2);
}

TEST(quota, without_readable_quota_files_there_is_no_quota)
{
    ck_assert_uint_eq(threads(), 0);
    mount_groups("/", "/");
    put("v2/cpu.max", "100000 100000\n");
    ck_assert_uint_eq(threads(), 2);
    put("cgroup", "nonsense\n1:\n");
    ck_assert_uint_eq(threads(), 0);
}
