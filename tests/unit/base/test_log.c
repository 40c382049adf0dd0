/* base/log: which lines reach the sink, and what they look like there. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "support/suite.h"

/* A sink that keeps the last line. */
static struct {
    int lines;
    enum log_level level;
    char text[2 * LOG_LINE_BYTES];
} seen;

static void keep(void *cookie, enum log_level level, const char *text)
{
    ck_assert_ptr_eq(cookie, &seen);
    seen.lines++;
    seen.level = level;
    strcpy(seen.text, text);
    errno = EBADF; /* a sink may fail */
}

static const struct log_sink keeper = {.write = keep, .cookie = &seen};

static void setup(void)
{
    memset(&seen, 0, sizeof(seen));
    log_set_sink(&keeper);
}

GROUP(log, setup, NULL);

TEST(log, a_line_reaches_the_sink_formatted)
{
    log_warning("%s: %d left", "echo", 3);
    ck_assert_int_eq(seen.lines, 1);
    ck_assert_int_eq(seen.level, LOG_LEVEL_WARNING);
    ck_assert_str_eq(seen.text, "echo: 3 left");
}

TEST(log, info_is_wanted_and_debug_is_not_unless_asked_for)
{
    log_info("written");
    log_debug("left out");
    ck_assert_int_eq(seen.lines, 1);
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("written");
    ck_assert_int_eq(seen.lines, 2);
    ck_assert_int_eq(seen.level, LOG_LEVEL_DEBUG);
}

TEST(log, an_error_is_written_at_every_level)
{
    log_set_level(LOG_LEVEL_ERROR);
    ck_assert(log_wanted(LOG_LEVEL_ERROR));
    ck_assert(!log_wanted(LOG_LEVEL_WARNING));
    log_warning("left out");
    log_error("written");
    ck_assert_int_eq(seen.lines, 1);
}

TEST(log, the_longest_line_is_kept_whole)
{
    char longest[LOG_LINE_BYTES];

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    log_info("%s", longest);
    ck_assert_str_eq(seen.text, longest);
}

TEST(log, a_longer_line_is_cut_and_ends_in_dots)
{
    char too_long[LOG_LINE_BYTES + 1];

    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    log_info("%s", too_long);
    ck_assert_uint_eq(strlen(seen.text), LOG_LINE_BYTES - 1);
    ck_assert_str_eq(seen.text + LOG_LINE_BYTES - 1 - 4, "x...");
}

TEST(log, errno_survives_a_line)
{
    errno = ENOENT;
    log_info("text");
    ck_assert_int_eq(seen.lines, 1);
    ck_assert_int_eq(errno, ENOENT);
}

TEST(log, without_a_sink_lines_go_to_stderr)
{
    char line[128];
    int pipe_fds[2];
    ssize_t n;

    ck_assert_int_eq(pipe(pipe_fds), 0);
    ck_assert_int_eq(dup2(pipe_fds[1], STDERR_FILENO), STDERR_FILENO);
    log_set_sink(NULL);
    log_error("user %s: there is no such user", "nobdy");
    n = read(pipe_fds[0], line, sizeof(line) - 1);
    ck_assert_int_gt(n, 0);
    line[n] = '\0';
    ck_assert_str_eq(line, "reactord: error: user nobdy: there is no such user\n");
}

TEST(log, limited_line_is_allowed_once_an_interval_with_the_number_suppressed)
{
    struct log_limit limit = {0};
    unsigned suppressed = 99;

    ck_assert(log_allowed(&limit, 50 * NS_PER_MS, &suppressed));
    ck_assert_uint_eq(suppressed, 0);
    for (int i = 0; i < 3; i++)
        ck_assert(!log_allowed(&limit, 50 * NS_PER_MS, &suppressed));
    usleep(60 * 1000);
    ck_assert(log_allowed(&limit, 50 * NS_PER_MS, &suppressed));
    ck_assert_uint_eq(suppressed, 3);
    usleep(60 * 1000);
    ck_assert(log_allowed(&limit, 50 * NS_PER_MS, &suppressed));
    ck_assert_uint_eq(suppressed, 0);
}

TEST(log, suppressed_lines_are_mentioned_only_if_there_were_some)
{
    ck_assert_str_eq(LOG_SUPPRESSED(0), "");
    ck_assert_str_eq(LOG_SUPPRESSED(1), " (1 more such line held back)");
    ck_assert_str_eq(LOG_SUPPRESSED(UINT_MAX), " (4294967295 more such lines held back)");
}

#define THREADS 4
#define ASKED   10000

static struct log_limit shared_limit;
static atomic_uint allowed, told;

static void *ask(void *arg)
{
    unsigned suppressed;

    (void)arg;
    for (int i = 0; i < ASKED; i++)
        if (log_allowed(&shared_limit, 3600 * NS_PER_S, &suppressed)) {
            atomic_fetch_add(&allowed, 1);
            atomic_fetch_add(&told, suppressed);
        }
    return NULL;
}

TEST(log, one_of_many_threads_gets_the_line_and_the_others_are_counted)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(atomic_load(&allowed), 1);
    /*
     * Those who came between the winner's two steps are in its count, the others wait for the next.
     */
    ck_assert_uint_eq(atomic_load(&told) + atomic_load(&shared_limit.suppressed),
                      THREADS * ASKED - 1);
}

static int copied;

static void count_copy(void *cookie, enum log_level level, const char *text)
{
    ck_assert_ptr_eq(cookie, &copied);
    ck_assert_int_le(level, LOG_LEVEL_WARNING);
    ck_assert_str_eq(text, "seen");
    copied++;
}

TEST(log, warnings_and_errors_are_copied)
{
    static const struct log_sink copy = {.write = count_copy, .cookie = &copied};

    log_set_copy(&copy);
    log_error("seen");
    log_warning("seen");
    log_notice("not seen");
    log_set_copy(NULL);
    log_error("no longer");
    ck_assert_int_eq(copied, 2);
    ck_assert_int_eq(seen.lines, 4);
}
