/* config/config_access_log: sections of access logs, the listeners that name them, bad values. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_compare.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

#define ECHO(log) "[listen e]\naddress = 127.0.0.1:7\nservice = echo\naccess_log = " log "\n"
#define LOG(name) "[access_log " name "]\ntarget = /tmp/" name "\n"

static struct config *running;
static struct config_compare *changes;

static void teardown(void)
{
    config_compare_destroy(changes);
    config_free(running);
    config_file_leave();
}

static const struct listener_log_conf *log_of(unsigned i)
{
    return listener_conf_log(&config_file.config->server.listeners[0], i);
}

GROUP(files, text_file_enter, teardown);

TEST(files, listener_has_the_logs_that_it_names_in_this_order)
{
    ck_assert_msg(config_file_load_text(LOG("a") "only = errors\nshare = 25%\n" ECHO("B, a")
                                            LOG("b") "format = json\n") == 0,
                  "%s", config_file.problems);
    ck_assert_str_eq(log_of(0)->where, "/tmp/b");
    ck_assert_str_eq(log_of(1)->where, "/tmp/a");
    ck_assert_int_eq(log_of(1)->filter.only, ACCESS_LOG_ERRORS);
    ck_assert_uint_eq(log_of(1)->filter.share, UINT64_C(1) << 30);
    ck_assert_ptr_null(log_of(2));
    ck_assert_str_eq(config_file.problems, "");
}

TEST(files, listener_with_a_target_has_this_log_and_one_without_has_none)
{
    ck_assert_int_eq(config_file_load_text(ECHO("/tmp/a,b")), 0);
    ck_assert_str_eq(log_of(0)->where, "/tmp/a,b");
    ck_assert_ptr_null(log_of(1));
    config_file_free();
    ck_assert_int_eq(config_file_load_text(ECHO("off")), 0);
    ck_assert_ptr_null(log_of(0));
}

TEST(files, interval_needs_no_target_of_its_own)
{
    ck_assert_msg(config_file_load_text(LOG("a") ECHO("a") "access_log_interval = 1s\n") == 0, "%s",
                  config_file.problems);
}

TEST(files, section_that_no_listener_names_is_told)
{
    ck_assert_int_eq(config_file_load_text(LOG("a") ECHO("off")), 0);
    ck_assert_msg(strstr(config_file.problems,
                         "t.ini:1: warning: [access_log a] has no effect: no listener names it "
                         "(access_log = a)") != NULL,
                  "%s", config_file.problems);
}

static const struct {
    const char *text;
    const char *problem;
} broken[] = {
    {ECHO("errors"), "t.ini:4: [listen e] access_log: there is no [access_log errors] (off, "},
    {LOG("errors") ECHO("error, errors"),
     "t.ini:6: [listen e] access_log: there is no [access_log error] (did you mean 'errors'?)"},
    {ECHO("stder"), "t.ini:4: [listen e] access_log: there is no [access_log stder] (did you mean "
                    "'stderr'?)"},
    {LOG("a") ECHO("a, /tmp/b"), "t.ini:6: [listen e] access_log: '/tmp/b' stands beside others"},
    {LOG("a") ECHO("a, syslog"), "t.ini:6: [listen e] access_log: 'syslog' stands beside others"},
    {LOG("a") ECHO("a, a"), "t.ini:6: [listen e] access_log: 'a' is given twice (off, "},
    {LOG("a") ECHO("a,"), "t.ini:6: [listen e] access_log: a name is missing beside a comma"},
    {LOG("a") ECHO("a, b c"), "t.ini:6: [listen e] access_log: 'b c' is not a name"},
    {ECHO("a,b,c,d,e,f,g,h,i"), "t.ini:4: [listen e] access_log: there are more than 8 names"},
    {ECHO("/tmp/"), "t.ini:4: [listen e] access_log: '/tmp/' is not the path of a file"},
    {LOG("a") ECHO("a") "access_log_format = json\n",
     "t.ini:7: [listen e] access_log_format: has no effect: each [access_log NAME] has a format"},
    {"[access_log a]\nonly = all\n" ECHO("a"),
     "t.ini:1: [access_log a] target: is missing: where the lines go (stderr, syslog, "},
    {"[access_log a]\ntarget = off\n" ECHO("a"),
     "t.ini:2: [access_log a] target: 'off' is not known"},
    {LOG("a") "only = error\n" ECHO("a"),
     "t.ini:3: [access_log a] only: 'error' is not known; did you mean 'errors'? (all, errors, "},
    {LOG("a") "share = 0%\n" ECHO("a"),
     "t.ini:3: [access_log a] share: '0%' is not a share (1% to 100%, or 1/1 to 1/1000000)"},
    {LOG("a") "share = 101%\n" ECHO("a"), "t.ini:3: [access_log a] share: '101%' is not a share"},
    {LOG("a") "share = 1/0\n" ECHO("a"), "t.ini:3: [access_log a] share: '1/0' is not a share"},
    {LOG("a") "share = 1/1000001\n" ECHO("a"), "t.ini:3: [access_log a] share: '1/1000001' is not"},
    {LOG("a") "share = 2/3\n" ECHO("a"), "t.ini:3: [access_log a] share: '2/3' is not a share"},
    {LOG("a") "share = %\n" ECHO("a"), "t.ini:3: [access_log a] share: '%' is not a share"},
    {LOG("a") "format = $clint\n" ECHO("a"),
     "t.ini:3: [access_log a] format: there is no variable 'clint'; did you mean 'client'? (text"},
    {LOG("a") "only = errors\nat_connect = yes\n" ECHO("a"),
     "t.ini:4: [access_log a] at_connect: has no effect: the condition is known only at the end"},
    {LOG("a") "at_connect = maybe\n" ECHO("a"), "t.ini:3: [access_log a] at_connect: 'maybe' is "},
    {LOG("syslog") ECHO("off"),
     "t.ini:1: [access_log syslog] has the name of a target (another name)"},
    {"[access_log]\n" ECHO("off"), "t.ini:1: [access_log] needs a name ([access_log NAME])"},
};

TEST_EACH(files, problem_has_its_line, ARRAY_LEN(broken))
{
    ck_assert_int_eq(config_file_load_text(broken[_i].text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, broken[_i].problem, strlen(broken[_i].problem)) ==
                      0,
                  "%s", config_file.problems);
    ck_assert_str_eq(strchr(config_file.problems, '\n'), "\n");
}

TEST(files, changes_of_a_section_are_reported_as_live)
{
    struct config_compare_text line;

    ck_assert_int_eq(config_file_load_text(LOG("a") ECHO("a")), 0);
    running = config_file.config;
    config_file.config = NULL;
    ck_assert_int_eq(config_file_load_text(LOG("a") "only = denied\n" ECHO("a")), 0);
    ck_assert_int_eq(config_compare_create(&changes, running, config_file.config), 0);
    ck_assert_uint_eq(changes->n, 1);
    ck_assert_str_eq(config_compare_text(&line, &changes->list[0]),
                     "[access_log a] only: all -> denied (live)");
}

TEST(files, dump_of_logs_can_be_loaded)
{
    char text[1 << 17];
    FILE *f = fmemopen(text, sizeof(text), "w");

    ck_assert_int_eq(config_file_load_text(LOG("a") "share = 1/3\n" LOG("b") ECHO("a, b")), 0);
    ck_assert_int_eq(config_dump(config_file.config, f), 0);
    fclose(f);
    config_file_free();
    ck_assert_ptr_nonnull(strstr(text, "#access_log_format = text\n"));
    ck_assert_msg(config_file_load_text(text) == 0, "%s", config_file.problems);
    ck_assert_str_eq(log_of(1)->where, "/tmp/b");
    ck_assert_uint_eq(log_of(0)->filter.share, (UINT64_C(1) << 32) / 3);
}
