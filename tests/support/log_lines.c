/* support/log_lines: see log_lines.h. */
#include "support/log_lines.h"

#include <check.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#define LOG_LINES_MAX 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LOG_LINES_MAX][LOG_LINE_BYTES];
static unsigned n_lines;

static void keep(void *cookie, enum log_level level, const char *text)
{
    (void)cookie;
    (void)level;
    pthread_mutex_lock(&lock);
    if (n_lines < LOG_LINES_MAX)
        snprintf(lines[n_lines++], LOG_LINE_BYTES, "%s", text);
    pthread_mutex_unlock(&lock);
}

void log_lines_capture(enum log_level level)
{
    static const struct log_sink sink = {.write = keep};

    log_set_sink(&sink);
    log_set_level(level);
}

unsigned log_lines_with(const char *text)
{
    unsigned found = 0;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < n_lines; i++)
        found += strstr(lines[i], text) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

const char *log_lines_last(void)
{
    return n_lines > 0 ? lines[n_lines - 1] : "";
}

void log_lines_expect(const char *text, const char *pattern)
{
    regex_t regex;

    ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    ck_assert_msg(regexec(&regex, text, 0, NULL, 0) == 0, "\"%s\" is no %s", text, pattern);
    regfree(&regex);
}
