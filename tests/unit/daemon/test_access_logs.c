/*
 * daemon/access_logs, config/option_access_log: one log for who shares it, what it is named, and
 * which formats are refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "daemon/access_logs.h"
#include "stats/access_log.h"
#include "support/config_file.h"
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
static unsigned before;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(first, sizeof(first), "%s/first.log", dir);
    snprintf(second, sizeof(second), "%s/second.log", dir);
    snprintf(rotated, sizeof(rotated), "%s/first.log.1", dir);
    for (unsigned i = 0; i < 4; i++)
        listeners[i].access_log.where = "off";
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

static void open_logs(void)
{
    ck_assert_int_eq(access_logs_open(&logs, &conf, BUFFER_BYTES, NULL), 0);
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

TEST(life, listeners_that_name_the_same_share_it)
{
    listeners[0].access_log.where = first;
    listeners[2].access_log.where = second;
    listeners[3].access_log.where = first;
    open_logs();
    ck_assert_ptr_nonnull(access_logs_find(logs, first));
    ck_assert_ptr_eq(access_logs_find(logs, first), access_logs_find(logs, strdupa(first)));
    ck_assert_ptr_ne(access_logs_find(logs, first), access_logs_find(logs, second));
    ck_assert_ptr_null(access_logs_find(logs, "off"));
    ck_assert_uint_eq(process_descriptors(), before + 2);
}

TEST(life, a_log_that_cannot_be_opened_is_named_and_nothing_stays_open)
{
    listeners[0].access_log.where = first;
    listeners[1].access_log.where = "/nonexistent/x.log";
    ck_assert_int_eq(access_logs_open(&logs, &conf, BUFFER_BYTES, NULL), -ENOENT);
    ck_assert_uint_eq(
        log_lines_with("access log /nonexistent/x.log: cannot be opened: No such file"), 1);
}

TEST(life, a_log_that_is_reopened_goes_on_in_a_new_file_and_loses_nothing)
{
    struct access_log *al;
    struct stat st;

    listeners[0].access_log.where = first;
    open_logs();
    al = access_logs_find(logs, first);
    access_log_put(al, "one\n", 4);
    ck_assert_int_eq(rename(first, rotated), 0);
    UNTIL(stat(rotated, &st) == 0 && st.st_size == 4);
    access_logs_reopen(logs);
    access_log_put(al, "two\n", 4);
    ck_assert_int_eq(access_logs_finish(logs), 0);
    expect_file(rotated, "one\n");
    expect_file(first, "two\n");
    access_logs_log_stats(logs);
    ck_assert_uint_eq(log_lines_with("lines=2 dropped=0 waiting_bytes=0"), 1);
}

TEST(life, no_logs_are_reopened_and_told_of_as_well)
{
    access_logs_reopen(NULL);
    access_logs_log_stats(NULL);
    open_logs();
    access_logs_reopen(logs);
    ck_assert_int_eq(access_logs_finish(logs), 0);
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
     "[listen e] access_log: 'jornal' is not known; did you mean 'journal'? (off, "},
};

GROUP(options, setup, teardown);

TEST_EACH(options, formats_are_taken_or_refused_with_a_hint, ARRAY_LEN(formats))
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
