/* log/log_line: what a line looks like, and that no text changes that. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log/log_line.h"
#include "stats/syslog_conf.h"
#include "support/log_lines.h"
#include "support/suite.h"

static const struct syslog_conf syslog_conf = {.facility = 3, .severity = -1, .tag = "reactord"};
static const struct syslog_conf journal_conf = {
    .protocol = SYSLOG_JOURNAL, .facility = 3, .severity = -1, .tag = "reactord"};

static const struct log_line_form plain_form = {LOG_LINE_PLAIN, NULL};
static const struct log_line_form priority_form = {LOG_LINE_PRIORITY, NULL};
static const struct log_line_form syslog_form = {LOG_LINE_SYSLOG, &syslog_conf};
static const struct log_line_form journal_form = {LOG_LINE_SYSLOG, &journal_conf};

/* The line as a string, in a static buffer. */
static const char *build(const struct log_line_form *form, enum log_level level, const char *text)
{
    static char string[LOG_LINE_MAX_BYTES + 1];
    static struct log_line line;

    log_line_build(&line, form, level, text);
    ck_assert_uint_le(line.len, sizeof(line.data));
    memcpy(string, line.data, line.len);
    string[line.len] = '\0';
    return string;
}

GROUP(log_line, NULL, NULL);

TEST(log_line, plain_line_has_time_process_level_and_thread)
{
    char pattern[160];

    snprintf(pattern, sizeof(pattern),
             "^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z "
             "reactord\\[%ld\\] warning main: front: 7 clients\n$",
             (long)getpid());
    log_lines_expect(build(&plain_form, LOG_LEVEL_WARNING, "front: 7 clients"), pattern);
}

TEST(log_line, a_plain_line_is_in_universal_time)
{
    time_t before_s, after_s;
    const char *line;
    struct tm tm = {0};

    setenv("TZ", "Asia/Kolkata", 1);
    tzset();
    before_s = time(NULL);
    line = build(&plain_form, LOG_LEVEL_INFO, "text");
    after_s = time(NULL);
    ck_assert_ptr_nonnull(strptime(line, "%Y-%m-%dT%H:%M:%S", &tm));
    ck_assert_int_ge(timegm(&tm), before_s);
    ck_assert_int_le(timegm(&tm), after_s + 1); /* time(2) lags behind the fine clock by a tick */
}

TEST(log_line, time_of_a_line_advances)
{
    char first[64];

    snprintf(first, sizeof(first), "%.19s", build(&plain_form, LOG_LEVEL_INFO, "text"));
    usleep(1100 * 1000);
    ck_assert_int_ne(strncmp(first, build(&plain_form, LOG_LEVEL_INFO, "text"), 19), 0);
}

TEST(log_line, line_with_a_priority_leaves_time_and_process_to_the_reader)
{
    ck_assert_str_eq(build(&priority_form, LOG_LEVEL_ERROR, "text"), "<3>main: text\n");
    ck_assert_str_eq(build(&priority_form, LOG_LEVEL_WARNING, "text"), "<4>main: text\n");
    ck_assert_str_eq(build(&priority_form, LOG_LEVEL_NOTICE, "text"), "<5>main: text\n");
    ck_assert_str_eq(build(&priority_form, LOG_LEVEL_INFO, "text"), "<6>main: text\n");
    ck_assert_str_eq(build(&priority_form, LOG_LEVEL_DEBUG, "text"), "<7>main: text\n");
}

TEST(log_line, syslog_line_equals_the_line_of_the_libc)
{
    char pattern[160];

    snprintf(pattern, sizeof(pattern),
             "^<29>[A-Z][a-z]{2} [ 123][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} reactord\\[%ld\\]: "
             "main: text$",
             (long)getpid());
    log_lines_expect(build(&syslog_form, LOG_LEVEL_NOTICE, "text"), pattern);
}

TEST(log_line, a_journal_line_is_a_field_a_line)
{
    ck_assert_str_eq(build(&journal_form, LOG_LEVEL_INFO, "text"),
                     "PRIORITY=6\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=reactord\n"
                     "REACTORD_THREAD=main\nMESSAGE=text\n");
}

TEST(log_line, layouts_do_not_share_a_cached_time)
{
    char plain[64];

    snprintf(plain, sizeof(plain), "%.11s", build(&plain_form, LOG_LEVEL_INFO, "text"));
    (void)build(&syslog_form, LOG_LEVEL_INFO, "text");
    ck_assert_int_eq(strncmp(plain, build(&plain_form, LOG_LEVEL_INFO, "text"), 11), 0);
}

static char worker_line[64];

static void *build_as_worker(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "work-2-1");
    strcpy(worker_line, build(&priority_form, LOG_LEVEL_INFO, "text"));
    return NULL;
}

TEST(log_line, line_names_the_thread_that_wrote_it)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, build_as_worker, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_str_eq(worker_line, "<6>work-2-1: text\n");
}

TEST(log_line, no_text_can_forge_a_line)
{
    static const struct log_line_form *const forms[] = {&priority_form, &journal_form};

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const char *line = build(forms[i], LOG_LEVEL_INFO, "a\nb\r\tc\\d\x1b[31m\x01\x7f\xc2\x9b");

        ck_assert_str_eq(strstr(line, "a\\n"), "a\\nb\\r\\tc\\\\d\\x1b[31m\\x01\\x7f\\xc2\\x9b\n");
    }
}

TEST(log_line, escaped_line_is_truncated_to_pipe_buf)
{
    char text[LOG_LINE_BYTES];
    const char *line;

    memset(text, '\x01', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    line = build(&plain_form, LOG_LEVEL_INFO, text);
    ck_assert_uint_le(strlen(line), PIPE_BUF);
    ck_assert_uint_ge(strlen(line), PIPE_BUF - 8);
    ck_assert_str_eq(line + strlen(line) - 8, "\\x01...\n");
}

TEST(log_line, an_ordinary_line_is_never_cut)
{
    char text[LOG_LINE_BYTES];
    const char *line;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    line = build(&journal_form, LOG_LEVEL_WARNING, text);
    ck_assert_ptr_nonnull(strstr(line, text));
}
