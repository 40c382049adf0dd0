#include "base/cpu_quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define NUMBER_BYTES 64

/* The v1 hierarchy with the controller cpu, or the v2 hierarchy. */
struct hierarchy {
    bool is_v2;
    char group[PATH_MAX]; /* path of the process's group in the hierarchy */
    char root[PATH_MAX];  /* the mounted directory */
    char mount[PATH_MAX];
};

static bool cpu_quota_has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* Parse a `cgroup` line, as "4:cpu,cpuacct:/group" or "0::/group". */
static bool cpu_quota_parse_group(struct hierarchy *h, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group)
        return false;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (h->is_v2 ? *controllers != '\0' : !cpu_quota_has_word(controllers, "cpu"))
        return false;
    snprintf(h->group, sizeof(h->group), "%s", group);
    return true;
}

/* Parse a `mountinfo` line, as "32 31 0:29 /root /mount rw shared:7 - cgroup cgroup rw,cpu". */
static bool cpu_quota_parse_mount(struct hierarchy *h, char *line)
{
    char *options = strstr(line, " - "), type[NUMBER_BYTES], words[NUMBER_BYTES * 4];

    if (!options || sscanf(options, " - %63s %*s %255s", type, words) != 2)
        return false;
    if (strcmp(type, h->is_v2 ? "cgroup2" : "cgroup") != 0 ||
        (!h->is_v2 && !cpu_quota_has_word(words, "cpu")))
        return false;
    return sscanf(line, "%*s %*s %*s %4095s %4095s", h->root, h->mount) == 2;
}

static bool cpu_quota_find_line(struct hierarchy *h, const char *proc, const char *name,
                                bool (*parse)(struct hierarchy *h, char *line))
{
    char path[PATH_MAX], *line = NULL;
    size_t size = 0;
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", proc, name);
    f = fopen(path, "re");
    if (!f)
        return false;
    while (!found && getline(&line, &size, f) > 0)
        found = parse(h, line);
    free(line);
    fclose(f);
    return found;
}

static int cpu_quota_read_words(const char *dir, const char *name, char first[NUMBER_BYTES],
                                char second[NUMBER_BYTES])
{
    char path[2 * PATH_MAX + NUMBER_BYTES];
    FILE *f;
    int n;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "re");
    if (!f)
        return 0;
    n = fscanf(f, "%63s %63s", first, second);
    fclose(f);
    return n;
}

/* Read the limit of the group at ${dir}; false: no limit. */
static bool cpu_quota_read_limit(struct cpu_quota *out, const struct hierarchy *h, const char *dir)
{
    char quota[NUMBER_BYTES], period[NUMBER_BYTES], rest[NUMBER_BYTES];

    if (h->is_v2) {
        if (cpu_quota_read_words(dir, "cpu.max", quota, period) != 2)
            return false;
    } else if (cpu_quota_read_words(dir, "cpu.cfs_quota_us", quota, rest) < 1 ||
               cpu_quota_read_words(dir, "cpu.cfs_period_us", period, rest) < 1) {
        return false;
    }
    /* "max" and -1, which mean no quota, do not parse */
    return parse_uint(&out->quota_us, quota, UINT32_MAX) == 0 && out->quota_us > 0 &&
           parse_uint(&out->period_us, period, UINT32_MAX) == 0 && out->period_us > 0;
}

static bool cpu_quota_is_lower(const struct cpu_quota *a, const struct cpu_quota *b)
{
    return b->quota_us == 0 || a->quota_us * b->period_us < b->quota_us * a->period_us;
}

/* The group's path below the mounted directory; "" if the group is outside. */
static const char *cpu_quota_mounted_part(const struct hierarchy *h)
{
    size_t len = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);

    if (strncmp(h->group, h->root, len) != 0 || (h->group[len] != '/' && h->group[len] != '\0'))
        return "";
    return h->group + len;
}

static void cpu_quota_read_hierarchy(struct cpu_quota *lowest, const struct hierarchy *h)
{
    char dir[2 * PATH_MAX];
    size_t mount_len = strlen(h->mount);

    snprintf(dir, sizeof(dir), "%s%s", h->mount, cpu_quota_mounted_part(h));
    for (;;) {
        struct cpu_quota q;

        if (cpu_quota_read_limit(&q, h, dir) && cpu_quota_is_lower(&q, lowest))
            *lowest = q;
        if (strlen(dir) <= mount_len)
            return;
        *strrchr(dir, '/') = '\0';
    }
}

struct cpu_quota cpu_quota_read(const char *proc)
{
    struct cpu_quota lowest = {.quota_us = 0};

    for (int is_v2 = 0; is_v2 <= 1; is_v2++) {
        struct hierarchy h = {.is_v2 = is_v2};

        if (cpu_quota_find_line(&h, proc, "cgroup", cpu_quota_parse_group) &&
            cpu_quota_find_line(&h, proc, "mountinfo", cpu_quota_parse_mount))
            cpu_quota_read_hierarchy(&lowest, &h);
    }
    return lowest;
}

unsigned cpu_quota_threads(const struct cpu_quota *q, unsigned per_cpu)
{
    uint64_t threads;

    if (q->quota_us == 0)
        return UINT_MAX;
    threads = (q->quota_us * per_cpu + q->period_us - 1) / q->period_us;
    return threads < UINT_MAX ? (unsigned)threads : UINT_MAX;
}
