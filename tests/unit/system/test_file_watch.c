/* system/file_watch: what is seen of files that change, and what is not. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/must.h"
#include "system/file_watch.h"
#include "support/suite.h"
#include "support/text_file.h"

static struct file_watch *w;
static const char *paths;
static size_t paths_len;

static void enter(void)
{
    text_file_enter();
    ck_assert_int_eq(file_watch_open(&w), 0);
}

static void leave(void)
{
    file_watch_close(w);
    ck_assert_int_eq(system("find . -mindepth 1 -delete"), 0);
    text_file_leave();
}

GROUP(watches, enter, leave);

static bool set(void)
{
    struct file_watch_problem problem;
    bool changed = file_watch_set(w, paths, paths_len, &problem);

    ck_assert_msg(problem.rc == 0, "%s: %d", problem.path, problem.rc);
    return changed;
}

/* Watch one path, and expect no event of that. */
static void watch(const char *path)
{
    paths = path;
    paths_len = strlen(path) + 1;
    ck_assert(set());
    ck_assert(!set());
    ck_assert(!file_watch_read(w));
}

static void write_file(const char *path)
{
    FILE *f = fopen(path, "w");

    ck_assert_ptr_nonnull(f);
    fputs("x\n", f);
    fclose(f);
}

/* Is a change seen, also behind the next file_watch_set()? */
static bool is_seen(void)
{
    bool seen = file_watch_read(w);

    (void)set();
    (void)file_watch_read(w);
    return seen;
}

TEST(watches, file_that_is_written_is_seen)
{
    write_file("a.ini");
    watch("a.ini");
    write_file("a.ini");
    ck_assert(is_seen());
    ck_assert(!is_seen());
}

TEST(watches, file_that_is_replaced_is_seen_each_time)
{
    write_file("a.ini");
    watch("a.ini");
    for (int i = 0; i < 3; i++) {
        write_file("a.new");
        ck_assert(!file_watch_read(w));
        ck_assert_int_eq(rename("a.new", "a.ini"), 0);
        ck_assert(is_seen());
    }
    write_file("a.ini");
    ck_assert(is_seen());
}

TEST(watches, file_that_is_removed_and_written_again_is_seen)
{
    write_file("a.ini");
    watch("a.ini");
    ck_assert_int_eq(unlink("a.ini"), 0);
    ck_assert(is_seen());
    write_file("a.ini");
    ck_assert(is_seen());
    write_file("a.ini");
    ck_assert(is_seen());
}

TEST(watches, other_files_of_the_directory_are_not_seen)
{
    write_file("a.ini");
    watch("a.ini");
    write_file("b.ini");
    ck_assert_int_eq(rename("b.ini", "c.ini"), 0);
    ck_assert_int_eq(mkdir("d", 0700) + unlink("c.ini"), 0);
    ck_assert(!file_watch_read(w));
}

TEST(watches, link_that_is_replaced_on_the_way_is_seen)
{
    ck_assert_int_eq(mkdir("..1", 0700) + mkdir("..2", 0700), 0);
    write_file("..1/a.ini");
    write_file("..2/a.ini");
    ck_assert_int_eq(symlink("..1", "..data") + symlink("..data/a.ini", "a.ini"), 0);
    watch("a.ini");
    ck_assert_int_eq(symlink("..2", "..data_tmp"), 0);
    ck_assert(!file_watch_read(w));
    ck_assert_int_eq(rename("..data_tmp", "..data"), 0);
    ck_assert(is_seen());
    write_file("..1/a.ini"); /* not in use now */
    ck_assert(!is_seen());
    write_file("..2/a.ini");
    ck_assert(is_seen());
}

TEST(watches, directory_that_is_replaced_is_seen)
{
    ck_assert_int_eq(mkdir("d", 0700) + mkdir("e", 0700), 0);
    write_file("d/a.ini");
    write_file("e/a.ini");
    watch("d/a.ini");
    ck_assert_int_eq(rename("d", "f"), 0);
    ck_assert(is_seen());
    ck_assert_int_eq(rename("e", "d"), 0);
    ck_assert(is_seen());
    write_file("d/a.ini");
    ck_assert(is_seen());
}

TEST(watches, file_in_a_directory_that_comes_later_is_seen)
{
    watch("d/a.ini");
    ck_assert_int_eq(mkdir("d", 0700), 0);
    ck_assert(is_seen());
    write_file("d/a.ini");
    ck_assert(is_seen());
}

TEST(watches, ini_files_of_a_directory_are_seen_and_no_others)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    watch("d/");
    write_file("d/a.txt");
    ck_assert(!is_seen());
    write_file("d/a.ini");
    ck_assert(is_seen());
    ck_assert_int_eq(unlink("d/a.ini"), 0);
    ck_assert(is_seen());
}

TEST(watches, link_to_itself_ends_the_walk)
{
    ck_assert_int_eq(symlink("a.ini", "a.ini"), 0);
    watch("a.ini");
    ck_assert_int_eq(unlink("a.ini"), 0);
    ck_assert(is_seen());
}

TEST(watches, path_that_is_no_longer_watched_is_not_seen)
{
    write_file("a.ini");
    write_file("b.ini");
    watch("a.ini");
    paths = "b.ini";
    ck_assert(set());
    (void)file_watch_read(w);
    write_file("a.ini");
    ck_assert(!file_watch_read(w));
    write_file("b.ini");
    ck_assert(file_watch_read(w));
}

TEST(watches, full_queue_is_a_change)
{
    FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    unsigned most = 0;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%u", &most), 1);
    fclose(f);
    if (most > 100000)
        return; /* too many to fill it */
    write_file("a.ini");
    watch("a.ini");
    for (unsigned i = 0; i <= most; i++) {
        int fd = open(i % 2 == 0 ? "x" : "y", O_CREAT | O_WRONLY, 0600);

        ck_assert_int_ge(fd, 0);
        close(fd);
        ck_assert_int_eq(unlink(i % 2 == 0 ? "x" : "y"), 0);
    }
    ck_assert(file_watch_read(w));
}
