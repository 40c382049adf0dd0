/*
 * log/access_logs, option/option_access_log: one log for who shares it, what it is named, and
 * which formats are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/config.h"
#include "log/access_logs.h"
#include "stats/access_log.h"
#include "stats/figure_log.h"
#include "support/config_file.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/until.h"

#define BUFFER_BYTES (128 << 10)

static char dir[] = "/tmp/reactord-test-access-XXXXXX";
static char first[64], second[64], rotated[64];
static struct listener_conf listeners[4];
static const struct server_conf conf = {.listeners = listeners, .n_listeners = 4};
static struct access_logs *logs;
static struct access_logs_change *change;
static unsigned before;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(access_logs_create(&logs, NULL), 0);
    ck_assert_uint_eq(process_descriptors(), before + 1);
    snprintf(first, sizeof(first), "%s/first.log", dir);
    snprintf(second, sizeof(second), "%s/second.log", dir);
    snprintf(rotated, sizeof(rotated), "%s/first.log.1", dir);
    for (unsigned i = 0; i < 4; i++)
        listeners[i].access_log.own.where = "off";
}

static void teardown(void)
{
    access_logs_close(logs);
    unlink(first);
    unlink(second);
    unlink(rotated);
    rmdir(dir);
    ck_assert_uint_eq(process_descriptors(), before);
}

static int prepare(void)
{
    return access_logs_prepare(logs, &conf, BUFFER_BYTES, &change);
}

static struct access_log *open_logs(void)
{
    struct access_log *al;

    ck_assert_int_eq(prepare(), 0);
    al = access_logs_change_find(change, first);
    access_logs_commit(change);
    return al;
}

static struct access_log *find(const char *where)
{
    struct access_log *found;

    ck_assert_int_eq(prepare(), 0);
    found = access_logs_change_find(change, where);
    access_logs_cancel(change);
    return found;
}

static unsigned configured(void)
{
    access_logs_figures(logs, figure_log()); /* metrics: only those that are configured */
    return log_lines_with("stats access_log");
}

static void expect_file(const char *path, const char *wanted)
{
    char text[256] = "";
    FILE *f = fopen(path, "r");

    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    ck_assert_str_eq(text, wanted);
}

GROUP(life, setup, teardown);

TEST(life, listeners_that_name_the_same_file_share_its_log)
{
    listeners[0].access_log.own.where = first;
    listeners[2].access_log.own.where = second;
    listeners[3].access_log.own.where = first;
    open_logs();
    ck_assert_ptr_nonnull(find(first));
    ck_assert_ptr_eq(find(first), find(strdupa(first)));
    ck_assert_ptr_ne(find(first), find(second));
    ck_assert_uint_eq(process_descriptors(), before + 3);
}

TEST(life, log_that_cannot_be_opened_is_named_and_leaks_nothing)
{
    listeners[0].access_log.own.where = first;
    listeners[1].access_log.own.where = "/nonexistent/x.log";
    ck_assert_int_eq(prepare(), -ENOENT);
    ck_assert_uint_eq(process_descriptors(), before + 1);
    ck_assert_uint_eq(
        log_lines_with("access log /nonexistent/x.log: cannot be opened: No such file"), 1);
}

TEST(life, reopened_log_continues_in_a_new_file_without_loss)
{
    struct access_log *al;
    struct stat st;

    listeners[0].access_log.own.where = first;
    al = open_logs();
    access_log_put(al, "one\n", 4);
    ck_assert_int_eq(rename(first, rotated), 0);
    UNTIL(stat(rotated, &st) == 0 && st.st_size == 4);
    access_logs_reopen(logs);
    access_log_put(al, "two\n", 4);
    ck_assert_int_eq(access_logs_finish(logs), 0);
    expect_file(rotated, "one\n");
    expect_file(first, "two\n");
    access_logs_log_stats(logs);
    EXPECT_LOG_LINES("lines=2 dropped=0 waiting_bytes=0", 1);
}

TEST(life, reopening_without_logs_is_logged)
{
    access_logs_reopen(NULL);
    access_logs_log_stats(NULL);
    ck_assert_int_eq(access_logs_fd(NULL), -1);
    ck_assert_int_eq(access_logs_close_unused(NULL), CLOCK_NEVER);
    open_logs();
    access_logs_reopen(logs);
    ck_assert_int_eq(access_logs_finish(logs), 0);
}

/* ---- another configuration ---- */

GROUP(other, setup, teardown);

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

TEST(other, unchanged_log_is_the_same_object_with_its_counters)
{
    struct access_log *al;
    unsigned descriptors;

    listeners[0].access_log.own.where = first;
    al = open_logs();
    ck_assert_uint_eq(access_log_number(al), 1);
    descriptors = process_descriptors();
    listeners[0].access_log.own.where = "off";
    listeners[1].access_log.own.where = strdupa(first);
    ck_assert_int_eq(prepare(), 0);
    ck_assert_ptr_eq(access_logs_change_find(change, first), al);
    ck_assert_ptr_null(access_logs_change_find(change, "off"));
    access_logs_commit(change);
    ck_assert_ptr_eq(find(first), al);
    ck_assert_uint_eq(access_log_number(al), 2);
    ck_assert_uint_eq(process_descriptors(), descriptors);
    ck_assert(!readable(access_logs_fd(logs)));
}

TEST(other, new_log_is_found_only_by_its_change_before_the_commit)
{
    struct access_log *al;

    open_logs();
    listeners[0].access_log.own.where = first;
    ck_assert_int_eq(prepare(), 0);
    al = access_logs_change_find(change, first);
    ck_assert_ptr_nonnull(al);
    ck_assert_uint_eq(configured(), 0);
    access_logs_commit(change);
    ck_assert_ptr_eq(find(first), al);
    access_log_put(al, "one\n", 4);
    ck_assert_int_eq(access_logs_finish(logs), 0);
    expect_file(first, "one\n");
}

TEST(other, cancelled_change_closes_only_what_it_opened)
{
    struct access_log *al;

    listeners[0].access_log.own.where = first;
    al = open_logs();
    listeners[1].access_log.own.where = second;
    ck_assert_int_eq(prepare(), 0);
    ck_assert_uint_eq(process_descriptors(), before + 3);
    access_logs_cancel(change);
    access_logs_cancel(NULL);
    ck_assert_uint_eq(process_descriptors(), before + 2);
    ck_assert_ptr_eq(find(first), al);
    ck_assert(!access_log_used(al));
}

TEST(other, change_with_a_log_that_cannot_be_opened_changes_nothing)
{
    listeners[0].access_log.own.where = first;
    open_logs();
    listeners[0].access_log.own.where = second;
    listeners[1].access_log.own.where = "/nonexistent/x.log";
    ck_assert_int_eq(prepare(), -ENOENT);
    ck_assert_uint_eq(process_descriptors(), before + 2);
    ck_assert_uint_eq(configured(), 1);
    ck_assert_int_eq(access_logs_close_unused(logs), CLOCK_NEVER);
    ck_assert_uint_eq(process_descriptors(), before + 2);
}

TEST(other, log_is_closed_after_its_last_user_with_all_lines_written)
{
    struct access_log *al;

    listeners[0].access_log.own.where = first;
    al = access_log_hold(open_logs());
    listeners[0].access_log.own.where = "off";
    open_logs();
    ck_assert(readable(access_logs_fd(logs)));
    ck_assert_uint_eq(configured(), 0);
    ck_assert_int_lt(access_logs_close_unused(logs), CLOCK_NEVER);
    ck_assert(!readable(access_logs_fd(logs)));
    access_log_put(al, "one\n", 4);
    access_log_put(al, "two\n", 4);
    access_logs_log_stats(logs);
    EXPECT_LOG_LINES("stats access_log", 1);
    access_log_release(al);
    UNTIL(access_logs_close_unused(logs) == CLOCK_NEVER);
    ck_assert_uint_eq(process_descriptors(), before + 1);
    expect_file(first, "one\ntwo\n");
    EXPECT_LOG_LINES("first.log: closed; no listener uses it", 1);
}

TEST(other, log_configured_again_before_it_is_closed_stays_open)
{
    struct access_log *al;

    listeners[0].access_log.own.where = first;
    al = access_log_hold(open_logs());
    listeners[0].access_log.own.where = "off";
    open_logs();
    ck_assert_int_lt(access_logs_close_unused(logs), CLOCK_NEVER);
    listeners[0].access_log.own.where = first;
    ck_assert_int_eq(prepare(), 0);
    access_log_release(al);
    ck_assert_int_lt(access_logs_close_unused(logs), CLOCK_NEVER);
    access_logs_commit(change);
    ck_assert_ptr_eq(find(first), al);
    ck_assert_int_eq(access_logs_close_unused(logs), CLOCK_NEVER);
}

static void put_lines(struct access_log *al, const char *line, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        access_log_put(al, line, strlen(line));
}

static size_t unread_bytes(int fd)
{
    int n;

    ck_assert_int_eq(ioctl(fd, FIONREAD, &n), 0);
    return (size_t)n;
}

TEST(other, log_without_a_reader_is_closed_after_two_seconds)
{
    static const char line[] = "0123456789012345678901234567890123456789012345678901234567890\n";
    struct access_log *al;
    int64_t begin_ns;
    int reader;

    ck_assert_int_eq(mkfifo(first, 0600), 0);
    reader = open(first, O_RDONLY | O_NONBLOCK);
    listeners[0].access_log.own.where = first;
    al = open_logs();
    put_lines(al, line, 2500); /* pipe and writer have space for 64 kilobytes each */
    UNTIL(unread_bytes(reader) > 0);
    listeners[0].access_log.own.where = "off";
    open_logs();
    begin_ns = clock_now_ns();
    UNTIL(access_logs_close_unused(logs) == CLOCK_NEVER);
    ck_assert_int_ge(clock_now_ns() - begin_ns, 2 * NS_PER_S);
    EXPECT_LOG_LINES("first.log: closed, not all lines are written; lines dropped:", 1);
    close(reader);
}

TEST(other, buffer_size_is_configurable)
{
    static const char line[1000] = {[0 ... 998] = 'x', [999] = '\n'};
    struct access_log_stats s;
    struct access_log *al;

    listeners[0].access_log.own.where = first;
    al = open_logs();
    ck_assert_int_eq(access_logs_prepare(logs, &conf, 2 << 20, &change), 0);
    access_logs_commit(change);
    for (unsigned i = 0; i < 500; i++)
        access_log_put(al, line, sizeof(line));
    access_log_stats(al, &s);
    ck_assert_uint_eq(s.dropped, 0);
    ck_assert_int_eq(access_logs_finish(logs), 0);
}

/* As the control loop: changes, whose listeners write lines until the next. */
static void *change_often(void *done)
{
    for (unsigned i = 0; i < 100; i++) {
        struct access_log *al;

        listeners[0].access_log.own.where = i % 2 == 0 ? first : second;
        ck_assert_int_eq(prepare(), 0);
        al = access_log_hold(access_logs_change_find(change, listeners[0].access_log.own.where));
        access_logs_commit(change);
        access_log_put(al, "x\n", 2);
        access_log_release(al);
    }
    atomic_store((atomic_bool *)done, true);
    return NULL;
}

TEST(other, changes_race_with_close_and_reopen_on_the_main_thread)
{
    atomic_bool done = false;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, change_often, &done), 0);
    while (!atomic_load(&done)) {
        access_logs_close_unused(logs);
        access_logs_reopen(logs);
        access_logs_log_stats(logs);
    }
    pthread_join(thread, NULL);
    UNTIL(access_logs_close_unused(logs) == CLOCK_NEVER);
    UNTIL(process_descriptors() == before + 2); /* the writer switches to the last new file */
    ck_assert_int_eq(access_logs_finish(logs), 0);
}

static int attempt(void *cookie)
{
    struct access_logs_change *c;
    int rc = access_logs_prepare(logs, &conf, BUFFER_BYTES, &c);

    (void)cookie;
    if (rc == 0)
        access_logs_cancel(c);
    return rc;
}

TEST(other, failed_allocation_leaks_nothing)
{
    unsigned n;

    listeners[0].access_log.own.where = first;
    open_logs();
    listeners[1].access_log.own.where = second;
    n = fault_each_allocation(attempt, NULL);
    ck_assert_uint_gt(n, 3);
    ck_assert_uint_eq(log_lines_with("cannot be opened: Cannot allocate memory"),
                      n - 2); /* without memory for the change, or the entry, no log is named */
    ck_assert_uint_eq(process_descriptors(), before + 2);
    ck_assert(!access_log_used(find(first)));
}

/* ---- formats ---- */

#define ECHO "[listen e]\naddress = 127.0.0.1:7\nservice = echo\naccess_log = stderr\n"

static const struct {
    const char *text;
    const char *problem; /* NULL: it is fine */
} formats[] = {
    {ECHO "access_log_format = json:client, tries\naccess_log_interval = 1s\n", NULL},
    {ECHO "access_log_format = '\"$client\" ${tries}'\n", NULL},
    {ECHO "access_log_format = $clint\n",
     "[listen e] access_log_format: there is no variable 'clint'; did you mean 'client'? (text, "},
    {ECHO "access_log_format = $xyzzy1\n",
     "[listen e] access_log_format: there is no variable 'xyzzy1'; there are time, msec, "},
    {ECHO "access_log_format = jsom\n",
     "[listen e] access_log_format: 'jsom' is not known; did you mean 'json'? (text, "},
    {ECHO "access_log_format = always the same\n",
     "[listen e] access_log_format: 'always the same' has no variable in it (text, "},
    {ECHO "access_log_format = $client $\n",
     "[listen e] access_log_format: the name of a variable is missing at the end (text, "},
    {ECHO "access_log_format = $client ${tries\n",
     "[listen e] access_log_format: the name of a variable is missing before '{tries' (text, "},
    {ECHO "access_log_format = json:tries,tries\n",
     "[listen e] access_log_format: 'tries' is given twice (text, "},
    {ECHO "access_log_interval = 10ms\n", "[listen e] access_log_interval: '10ms' is out of range"},
    {"[listen e]\naddress = 127.0.0.1:7\nservice = echo\naccess_log_format = json\n",
     "[listen e] access_log_format: has no effect without an access log (set access_log)"},
    {"[listen e]\naddress = 127.0.0.1:7\nservice = echo\naccess_log_interval = 1s\n",
     "[listen e] access_log_interval: has no effect without an access log (set access_log)"},
    {"[listen e]\naddress = 127.0.0.1:7\nservice = echo\naccess_log = jornal\n"
     "access_log_format = json\n",
     "[listen e] access_log: there is no [access_log jornal] (did you mean 'journal'?)"},
};

GROUP(options, setup, teardown);

TEST_EACH(options, formats_are_accepted_or_refused_with_a_hint, ARRAY_LEN(formats))
{
    char path[80];
    FILE *f;

    snprintf(path, sizeof(path), "%s/t.ini", dir);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(formats[_i].text, f);
    fclose(f);
    config_file_load(path);
    unlink(path);
    if (formats[_i].problem) {
        ck_assert_int_eq(config_file.rc, -EINVAL);
        ck_assert_msg(strstr(config_file.problems, formats[_i].problem) != NULL, "%s",
                      config_file.problems);
        ck_assert_ptr_eq(strchr(config_file.problems, '\n'),
                         config_file.problems + strlen(config_file.problems) - 1);
    } else {
        ck_assert_msg(config_file.rc == 0, "%s", config_file.problems);
    }
    config_file_free();
}
