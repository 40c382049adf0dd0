/* support/process: see process.h. */
#include "support/process.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

unsigned process_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* without the one that reads the directory */
}

/* The name of thread ${tid}, "" if it has ended. */
static void thread_name(const char *tid, char *name, int size)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
    file = fopen(path, "r");
    if (!file || !fgets(name, size, file))
        name[0] = '\0';
    if (file)
        fclose(file);
}

unsigned process_loops(void)
{
    DIR *dir = opendir("/proc/self/task");
    char own[32], name[32], pid[16];
    unsigned n = 0;

    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    thread_name(pid, own, sizeof(own));
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        thread_name(entry->d_name, name, sizeof(name));
        n += name[0] != '\0' && strcmp(name, own) != 0;
    }
    closedir(dir);
    return n;
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
