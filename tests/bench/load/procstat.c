#include "load/procstat.h"

#include "common/die.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 384 };

/* A thread that ended between readdir and here counts as nothing. */
static uint64_t thread_cpu_ns(const char *tasks, const char *tid)
{
    char path[PATH_BYTES];
    uint64_t cpu_ns = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s/schedstat", tasks, tid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%" SCNu64, &cpu_ns) != 1)
        cpu_ns = 0;
    fclose(file);
    return cpu_ns;
}

uint64_t procstat_cpu_ns(pid_t pid)
{
    char tasks[64];
    uint64_t cpu_ns = 0;
    struct dirent *entry;
    DIR *dir;

    snprintf(tasks, sizeof(tasks), "/proc/%d/task", (int)pid);
    dir = opendir(tasks);
    if (!dir)
        die_errno(tasks);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            cpu_ns += thread_cpu_ns(tasks, entry->d_name);
    closedir(dir);
    return cpu_ns;
}

uint64_t procstat_pss_kb(pid_t pid)
{
    char path[64];
    char line[256];
    uint64_t pss_kb = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    file = fopen(path, "re");
    if (!file)
        die_errno(path);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "Pss: %" SCNu64, &pss_kb) == 1)
            break;
    fclose(file);
    if (pss_kb == 0)
        die("%s: no Pss", path);
    return pss_kb;
}
