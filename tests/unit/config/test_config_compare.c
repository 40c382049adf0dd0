/* config/config_compare: what a reload changes, in which words, and what it may not change. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/config_compare.h"
#include "ini/diagnostics.h"
#include "support/config_file.h"
#include "support/fault.h"
#include "support/suite.h"
#include "support/text_file.h"

#define ECHO  "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
#define UNIX  "[listen e]\naddress = /tmp/x\nservice = echo\n"
#define PROXY "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n"

static struct config *running;
static struct config_compare *changes;
static char *problems;

static void leave(void)
{
    config_compare_destroy(changes);
    changes = NULL;
    config_free(running);
    running = NULL;
    free(problems);
    problems = NULL;
    config_file_leave();
}

GROUP(compare, text_file_enter, leave);

static void run_with(const char *text)
{
    ck_assert_msg(config_file_load_text(text) == 0, "%s", config_file.problems);
    running = config_file.config;
    config_file.config = NULL;
}

/* The changes from what runs to ${text}, one a line. */
static const char *changes_to(const char *text)
{
    static char all[8192];
    size_t len = 0;

    ck_assert_msg(config_file_load_text(text) == 0, "%s", config_file.problems);
    ck_assert_int_eq(config_compare_create(&changes, running, config_file.config), 0);
    all[0] = '\0';
    for (size_t i = 0; i < changes->n; i++) {
        struct config_compare_text line;

        len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", i > 0 ? "\n" : "",
                                config_compare_text(&line, &changes->list[i]));
    }
    return all;
}

TEST(compare, the_same_file_changes_nothing)
{
    run_with(ECHO PROXY "[upstream u]\nserver.a = 127.0.0.1:9 weight=2\n");
    ck_assert_str_eq(changes_to(ECHO PROXY "[upstream u]\nserver.a = 127.0.0.1:9 weight=2\n"), "");
}

TEST(compare, changed_option_is_reported_with_both_values_and_its_effect)
{
    run_with("[worker]\nthreads = 2\n" ECHO "idle_timeout = 1m\npipeline = log\n");
    ck_assert_str_eq(
        changes_to("[worker]\nthreads = 4\n" ECHO "idle_timeout = 30s\npipeline = log, executor\n"),
        "[worker] threads: 2 -> 4 (live)\n"
        "[listen e] idle_timeout: 1m -> 30s (live)\n"
        "[listen e] pipeline: log -> log, executor (new connections)");
}

TEST(compare, reordered_routes_are_a_change)
{
#define ROUTED "[listen r]\naddress = 127.0.0.1:9\nservice = proxy\n"
#define H2     "route.b = alpn:h2 alpn:x -> u\n"
#define ACME   "route.a = alpn:x alpn:acme -> u\n"
#define UP     "[upstream u]\nserver.a = 127.0.0.1:10\n"
    run_with(ROUTED H2 ACME UP);
    ck_assert_str_eq(changes_to(ROUTED H2 ACME UP), "");
    config_compare_destroy(changes);
    ck_assert_str_eq(changes_to(ROUTED ACME H2 UP),
                     "[listen r] the order of its routes has changed (new connections)");
    config_compare_destroy(changes);
    ck_assert_str_eq(changes_to(ROUTED ACME UP),
                     "[listen r] route.b: removed: alpn:h2 alpn:x -> u (new connections)");
}

TEST(compare, added_or_removed_option_is_compared_with_its_default)
{
    run_with(ECHO "idle_timeout = 1m\nbacklog = 4096\n");
    ck_assert_str_eq(changes_to("[worker]\nio_ratio = 80\n" ECHO "access_log = /tmp/a\n"),
                     "[worker] io_ratio: 50 -> 80 (live)\n"
                     "[listen e] access_log: off -> /tmp/a (live)\n"
                     "[listen e] idle_timeout: 1m -> 1h (live)");
}

TEST(compare, empty_value_is_reported_as_empty)
{
    run_with(PROXY "[upstream u]\nserver.a = 127.0.0.1:9\n");
    ck_assert_str_eq(
        changes_to(PROXY "[upstream u]\nserver.a = 127.0.0.1:9\ncheck = tcp\ncheck_expect = x\n"),
        "[upstream u] check: off -> tcp (live)\n"
        "[upstream u] check_expect: empty -> x (live)");
}

#define STEPS  PROXY "[upstream u]\nserver.a = 127.0.0.1:9\ncheck = steps\ncheck_step.1 = send "
#define AGENTS PROXY "[upstream u]\nserver.a = 127.0.0.1:9\nagent_check = 5\nagent_send = "

TEST(compare, what_may_have_a_password_is_not_shown)
{
    run_with(STEPS "AUTH old\n");
    ck_assert_str_eq(changes_to(STEPS "AUTH new\ncheck_step.2 = expect OK\n"),
                     "[upstream u] check_step.1: changed (live)\n"
                     "[upstream u] check_step.2: added (live)");
}

TEST(compare, what_an_agent_is_sent_is_not_shown)
{
    run_with(AGENTS "old\n");
    ck_assert_str_eq(changes_to(AGENTS "new\n"), "[upstream u] agent_send: changed (live)");
}

static const char *const same_values[][2] = {
    {"idle_timeout = 60s\n", "idle_timeout = 1m\n"},
    {"idle_timeout = 1h\n", ""},
    {"", "nodelay = on\n"},
    {"frame_max_length = 1k\npipeline = frame\n", "frame_max_length = 1024\npipeline = frame\n"},
    {"max_lifetime = 1d\nlifetime_jitter = 5\n", "max_lifetime = 24h\nlifetime_jitter = 5%\n"},
};

TEST_EACH(compare, same_value_in_another_notation_is_no_change, ARRAY_LEN(same_values))
{
    char text[512];

    snprintf(text, sizeof(text), "%s%s", ECHO, same_values[_i][0]);
    run_with(text);
    snprintf(text, sizeof(text), "%s%s", ECHO, same_values[_i][1]);
    ck_assert_str_eq(changes_to(text), "");
}

TEST(compare, added_or_removed_section_is_one_change)
{
    run_with(ECHO PROXY "[upstream u]\nserver.a = 127.0.0.1:9\n");
    ck_assert_str_eq(changes_to(PROXY "[listen q]\naddress = 127.0.0.1:6\nservice = echo\n"
                                      "[upstream u]\nserver.a = 127.0.0.1:9\n"
                                      "[upstream v]\nserver.a = 127.0.0.1:9\nretries = 1\n"),
                     "[listen e] removed (live)\n"
                     "[listen q] added (live)\n"
                     "[upstream v] added (live)");
}

TEST(compare, order_of_sections_and_options_is_no_change)
{
    run_with(PROXY ECHO "[upstream u]\nserver.a = 127.0.0.1:9\nserver.b = 127.0.0.1:10\n");
    ck_assert_str_eq(changes_to("[upstream u]\nserver.b = 127.0.0.1:10\nserver.a = 127.0.0.1:9\n"
                                "[worker]\nthreads = 0\n" ECHO PROXY),
                     "");
}

TEST(compare, servers_are_added_and_removed_by_id)
{
    run_with(PROXY "[upstream u]\nserver.a = 127.0.0.1:9\nserver.c = 127.0.0.1:10 weight=3\n");
    ck_assert_str_eq(
        changes_to(PROXY "[upstream u]\nserver.b = 127.0.0.1:9 backup\nserver.c = 127.0.0.1:10 "
                         "weight=3\n"),
        "[upstream u] server.a: removed: 127.0.0.1:9 (live)\n"
        "[upstream u] server.b: added: 127.0.0.1:9 backup (live)");
}

static const struct {
    const char *before, *after, *told;
} servers[] = {
    {"127.0.0.1:9 weight=1", "127.0.0.1:9 weight=2", "weight=1 -> weight=2"},
    {"127.0.0.1:9 weight=1 backup", "127.0.0.1:9 weight=2", "weight=1 backup -> weight=2"},
    {"127.0.0.1:9 weight=1", "127.0.0.1:9 weight=10", "weight=1 -> weight=10"},
    {"127.0.0.1:9", "127.0.0.1:10", "127.0.0.1:9 -> 127.0.0.1:10"},
    {"127.0.0.1:9", "127.0.0.1:9 disabled", "127.0.0.1:9 -> 127.0.0.1:9 disabled"},
};

TEST_EACH(compare, changed_words_of_a_server_line_are_reported, ARRAY_LEN(servers))
{
    char text[512], line[256];

    snprintf(text, sizeof(text), "%s[upstream u]\nserver.z = 127.0.0.1:1\nserver.a = %s\n", PROXY,
             servers[_i].before);
    run_with(text);
    snprintf(text, sizeof(text), "%s[upstream u]\nserver.z = 127.0.0.1:1\nserver.a = %s\n", PROXY,
             servers[_i].after);
    snprintf(line, sizeof(line), "[upstream u] server.a: %s (live)", servers[_i].told);
    ck_assert_str_eq(changes_to(text), line);
}

TEST(compare, changed_words_of_a_server_line_are_whole_up_to_206_bytes)
{
    char name[64], text[512], after[256], line[512];

    memset(name, 'n', 63);
    name[63] = '\0';
    snprintf(after, sizeof(after), "%s.%s.%s.nn:80 weight=2", name, name, name);
    ck_assert_uint_eq(strlen(after), 206);
    run_with(PROXY "[upstream u]\nserver.a = 127.0.0.1:9 weight=1\n");
    snprintf(text, sizeof(text), PROXY "[upstream u]\nserver.a = %s\n", after);
    snprintf(line, sizeof(line), "[upstream u] server.a: 127.0.0.1:9 weight=1 -> %s (live)", after);
    ck_assert_str_eq(changes_to(text), line);
}

TEST(compare, changed_part_of_long_values_is_reported)
{
    char before[1024] = ECHO "deny = ", after[2048];
    const char *told;

    for (int i = 0; i < 60; i++)
        sprintf(before + strlen(before), "10.0.%d.0/24, ", i);
    sprintf(after, "%s192.0.2.2\n", before);
    strcat(before, "192.0.2.1\n");
    run_with(before);
    told = changes_to(after);
    ck_assert_str_eq(told, "[listen e] deny: ...192.0.2.1 -> ...192.0.2.2 (new connections)");
}

TEST(compare, line_holds_values_of_maximum_length)
{
    char before[2048] = ECHO "access_log = /", after[2048] = ECHO "access_log = /";

    memset(before + strlen(before), 'a', 850);
    memset(after + strlen(after), 'b', 850);
    strcat(before, "\n");
    strcat(after, "\n");
    run_with(before);
    ck_assert_uint_gt(strlen(changes_to(after)), 400);
}

/* ---- access rules ---- */

TEST(compare, changed_rules_in_a_file_are_a_change)
{
    char path[4096], text[8192];

    ck_assert_ptr_nonnull(realpath(".", path));
    snprintf(text, sizeof(text), "%sallow = 10.0.0.0/8, file:%s/rules\ndeny = 10.1.0.0/16\n", ECHO,
             path);
    text_file_write_text("rules", "192.0.2.1\n");
    run_with(text);
    ck_assert_str_eq(changes_to(text), "");
    config_compare_destroy(changes);
    text_file_write_text("rules", "192.0.2.2\n");
    ck_assert_str_eq(
        changes_to(text),
        "[listen e] allow: the rules in the file have changed: 2 -> 2 (new connections)");
    config_compare_destroy(changes);
    text_file_write_text("rules", "192.0.2.1\n192.0.2.2\n");
    ck_assert_str_eq(
        changes_to(text),
        "[listen e] allow: the rules in the file have changed: 2 -> 3 (new connections)");
}

TEST(compare, rules_of_deny_are_compared_separately)
{
    char path[4096], text[8192];

    ck_assert_ptr_nonnull(realpath(".", path));
    snprintf(text, sizeof(text), "%sallow = 10.0.0.0/8\ndeny = file:%s/rules\n", ECHO, path);
    text_file_write_text("rules", "10.1.0.0/16\n10.2.0.0/16\n");
    run_with(text);
    text_file_write_text("rules", "10.1.0.0/16\n");
    ck_assert_str_eq(
        changes_to(text),
        "[listen e] deny: the rules in the file have changed: 2 -> 1 (new connections)");
}

TEST(compare, changed_verdict_in_a_rules_file_is_a_change)
{
    char path[4096], text[8192];

    ck_assert_ptr_nonnull(realpath(".", path));
    snprintf(text, sizeof(text), "%saccess_rules = %s/rules\n", ECHO, path);
    text_file_write_text("rules", "allow 10.0.0.0/8\ndeny all\n");
    run_with(text);
    text_file_write_text("rules", "deny 10.0.0.0/8\ndeny all\n");
    ck_assert_str_eq(
        changes_to(text),
        "[listen e] access_rules: the rules in the file have changed: 4 -> 4 (new connections)");
}

/* ---- what needs an upgrade ---- */

/* What a reload of ${text} says; "" if it is taken. */
static const char *reload(const char *text)
{
    size_t size;
    FILE *out = open_memstream(&problems, &size);
    int rc;

    text_file_write_text("t.ini", text);
    rc = config_reload(&config_file.config, "t.ini", running, out);
    fclose(out);
    ck_assert_int_eq(rc, *problems == '\0' ? 0 : -EINVAL);
    return problems;
}

TEST(compare, a_change_that_needs_an_upgrade_is_refused_by_name_and_line)
{
    run_with("[worker]\nthreads = 1\n" UNIX);
    ck_assert_str_eq(reload("[worker]\nthreads = 2\nchooser = p2c\n" UNIX "unix_mode = 600\n"),
                     "t.ini:3: [worker] chooser: shuffled -> p2c needs a new process (upgrade, "
                     "restart, or keep the value)\n"
                     "t.ini:7: [listen e] unix_mode: empty -> 600 needs a new process (upgrade, "
                     "restart, or keep the value)\n");
}

TEST(compare, removed_option_is_refused_at_its_section_or_file)
{
    run_with("[worker]\nchooser = p2c\n[executor]\nthreads = 5\n" ECHO);
    ck_assert_str_eq(reload("[worker]\nthreads = 2\n" ECHO),
                     "t.ini:0: [executor] threads: 5 -> 4 needs a new process (upgrade, restart, "
                     "or keep the value)\n"
                     "t.ini:1: [worker] chooser: p2c -> shuffled needs a new process (upgrade, "
                     "restart, or keep the value)\n");
}

TEST(compare, included_file_of_the_line_is_named)
{
    text_file_write_text("more.ini", "\n[worker]\nchooser = p2c\n");
    run_with(ECHO);
    ck_assert_str_eq(reload("include = more.ini\n" ECHO),
                     "more.ini:3: [worker] chooser: shuffled -> p2c needs a new process "
                     "(upgrade, restart, or keep the value)\n");
}

TEST(compare, reload_accepts_all_other_changes)
{
    run_with("[worker]\nthreads = 1\ntask_quantum = 1000us\n" ECHO);
    ck_assert_str_eq(reload("[worker]\nthreads = 2\ntask_quantum = 1ms\n" ECHO "pipeline = log\n"
                            "[listen f]\naddress = /tmp/x\nservice = echo\nunix_mode = 600\n"),
                     "");
    ck_assert_uint_eq(config_file.config->server.worker.threads.n, 2);
}

TEST(compare, file_with_errors_reports_only_the_errors)
{
    run_with(ECHO);
    ck_assert_str_eq(
        reload("[worker]\nchooser = p2c\nio_ratio = many\n" ECHO),
        "t.ini:3: [worker] io_ratio: 'many' is not a percentage (auto, or 1 to 100, in percent)\n");
}

static int attempt(void *cookie)
{
    struct config_compare *cmp;
    int rc = config_compare_create(&cmp, running, config_file.config);

    (void)cookie;
    if (rc == 0)
        config_compare_destroy(cmp);
    return rc;
}

TEST(compare, failed_allocation_fails)
{
    run_with(ECHO PROXY "[upstream u]\nserver.a = 127.0.0.1:9\n");
    ck_assert_int_eq(config_file_load_text(ECHO "idle_timeout = 1s\n"), 0);
    ck_assert_uint_gt(fault_each_allocation(attempt, NULL), 5);
}

static int attempt_reload(void *cookie)
{
    struct config *config;
    int rc = config_reload(&config, "t.ini", running, cookie);

    if (rc == 0)
        config_free(config);
    return rc;
}

TEST(compare, failed_allocation_fails_a_reload)
{
    FILE *out = fopen("/dev/null", "w");

    run_with(ECHO);
    text_file_write_text("t.ini", ECHO "idle_timeout = 1s\n");
    ck_assert_uint_gt(fault_each_allocation(attempt_reload, out), 50);
    fclose(out);
}
