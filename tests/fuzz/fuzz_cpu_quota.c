/*
 * Fuzz base/cpu_quota with the files of control groups: the quota is the lowest of all groups that
 * were looked at, as a second reading of their files finds it.
 *
 * The input is files with NUL between them: `cgroup`, `mountinfo`, then files of groups, each with
 * its path as the first line. The module opens them by a function of this file: so its source is
 * included here.
 */
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

static FILE *open_file(const char *path, const char *mode);

#define fopen             open_file
#define cpu_quota_read    fuzz_cpu_quota_read
#define cpu_quota_threads fuzz_cpu_quota_threads
#include "base/cpu_quota.c"
#undef fopen

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILES_MAX     64
#define PATHS_MAX     4096
#define DIGITS_MAX    10 /* of UINT32_MAX */
#define THREADS_CHECK 3

static char *files[FILES_MAX];
static unsigned n_files;

/* The limits of files that were opened, by a second reading. */
static struct cpu_quota lowest;
static unsigned n_opened;

/* What is in the file ${path}; NULL: there is none. */
static char *content_of(const char *path)
{
    size_t len = strlen(path);

    for (unsigned i = 0; i < 2 && i < n_files; i++)
        if (strcmp(path, i == 0 ? "/proc/cgroup" : "/proc/mountinfo") == 0)
            return files[i];
    for (unsigned i = 2; i < n_files; i++)
        if (strncmp(files[i], path, len) == 0 && files[i][len] == '\n')
            return files[i] + len + 1;
    return NULL;
}

/* The number that is the word ${i} of ${text}; 0: none. */
static uint64_t number_of(const char *text, unsigned i)
{
    uint64_t n = 0;
    size_t digits = 0;

    for (; text; i--) {
        while (isspace((unsigned char)*text))
            text++;
        if (i == 0)
            break;
        while (*text != '\0' && !isspace((unsigned char)*text))
            text++;
    }
    while (text && isdigit((unsigned char)text[digits]) && digits < DIGITS_MAX)
        n = n * 10 + (uint64_t)(text[digits++] - '0');
    if (digits == 0 || text[0] == '0' || n > UINT32_MAX)
        return 0;
    return text[digits] == '\0' || isspace((unsigned char)text[digits]) ? n : 0;
}

static void note_limit(uint64_t quota_us, uint64_t period_us)
{
    if (quota_us == 0 || period_us == 0)
        return;
    if (lowest.quota_us == 0 || (long double)quota_us / (long double)period_us <
                                    (long double)lowest.quota_us / (long double)lowest.period_us)
        lowest = (struct cpu_quota){quota_us, period_us};
}

/* The limit of a group whose first file is ${path}. */
static void note_group(const char *path)
{
    static const char v1[] = "/cpu.cfs_quota_us", v2[] = "/cpu.max";
    size_t len = strlen(path);
    char period[3 * PATH_MAX];

    if (len >= strlen(v2) && strcmp(path + len - strlen(v2), v2) == 0) {
        note_limit(number_of(content_of(path), 0), number_of(content_of(path), 1));
    } else if (len >= strlen(v1) && strcmp(path + len - strlen(v1), v1) == 0) {
        snprintf(period, sizeof(period), "%.*s/cpu.cfs_period_us", (int)(len - strlen(v1)), path);
        note_limit(number_of(content_of(path), 0), number_of(content_of(period), 0));
    }
}

static FILE *open_file(const char *path, const char *mode)
{
    char *content = content_of(path);

    MUST(strcmp(mode, "re") == 0 && ++n_opened < PATHS_MAX);
    note_group(path);
    return content ? fmemopen(content, strlen(content), "r") : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1), *at = text;
    struct cpu_quota q;

    MUST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    lowest = (struct cpu_quota){.quota_us = 0};
    for (n_files = n_opened = 0; n_files < FILES_MAX && at <= text + size; at += strlen(at) + 1)
        files[n_files++] = at;
    q = cpu_quota_read("/proc");
    MUST(q.quota_us == lowest.quota_us && (q.quota_us == 0 || q.period_us == lowest.period_us));
    for (unsigned per_cpu = 1; per_cpu <= THREADS_CHECK; per_cpu++) {
        unsigned threads = cpu_quota_threads(&q, per_cpu);

        MUST(q.quota_us > 0 || threads == UINT_MAX);
        MUST(threads == UINT_MAX || (threads * q.period_us >= q.quota_us * per_cpu &&
                                     (threads - 1) * q.period_us < q.quota_us * per_cpu));
    }
    free(text);
    return 0;
}
