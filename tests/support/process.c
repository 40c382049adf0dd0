/* support/process: see process.h. */
#include "support/process.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static unsigned count_entries(const char *path)
{
    DIR *dir = opendir(path);
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

unsigned process_descriptors(void)
{
    return count_entries("/proc/self/fd") - 1; /* without the one that reads the directory */
}

unsigned process_threads(void)
{
    return count_entries("/proc/self/task");
}

static void set_limit(rlim_t limit)
{
    struct rlimit rl;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
    rl.rlim_cur = limit < rl.rlim_max ? limit : rl.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

/* The limit is one above the highest number, and numbers below it may be free: fill those first. */
void process_allow_descriptors(unsigned more)
{
    unsigned n = process_descriptors();
    int top = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(top, 0);
    while ((unsigned)top > n) { /* there was a gap below */
        n++;
        top = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ck_assert_int_ge(top, 0);
    }
    close(top);
    set_limit((rlim_t)top + more);
}

void process_allow_any_descriptors(void)
{
    set_limit(RLIM_INFINITY);
}
