#include "net/descriptor_budget.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

#define DESCRIPTOR_BUDGET_GAP 4096

unsigned descriptor_budget_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > UINT_MAX / 2)
        return UINT_MAX / 2;
    return (unsigned)limit.rlim_cur;
}

/*
 * Count open descriptors without /proc, up to the first DESCRIPTOR_BUDGET_GAP closed ones in a row:
 * the kernel gives out the lowest first.
 */
static unsigned descriptor_budget_probe(void)
{
    unsigned limit = descriptor_budget_limit(), n = 0, closed = 0;

    for (unsigned fd = 0; fd < limit && closed < DESCRIPTOR_BUDGET_GAP; fd++) {
        bool open = fcntl((int)fd, F_GETFD) >= 0;

        n += open;
        closed = open ? 0 : closed + 1;
    }
    return n;
}

unsigned descriptor_budget_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    if (!dir)
        return descriptor_budget_probe();
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 3; /* without ".", ".." and ${dir} */
}
