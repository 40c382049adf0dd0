#include "net/descriptor_budget.h"

#include <dirent.h>
#include <limits.h>
#include <sys/resource.h>

unsigned descriptor_budget_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > UINT_MAX / 2)
        return UINT_MAX / 2;
    return (unsigned)limit.rlim_cur;
}

unsigned descriptor_budget_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 3; /* without ".", ".." and ${dir} */
}
