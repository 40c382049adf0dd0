/*
 * daemon/user_check: what another user than root could not open later. Each case runs in a process
 * of its own; without root it does nothing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "log/access_logs.h"
#include "log/log_target.h"
#include "system/privileges.h"
#include "daemon/user_check.h"
#include "support/config_file.h"
#include "support/log_lines.h"
#include "support/suite.h"
#include "support/text_file.h"

#define ECHO "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"

static char dir[4096];
static char said[16384]; /* warnings, one a line */

static void setup(void)
{
    text_file_enter();
    ck_assert_ptr_nonnull(getcwd(dir, sizeof(dir)));
    ck_assert_int_eq(chmod(dir, 0755), 0);
}

GROUP(check, setup, config_file_leave);

static void say(void *cookie, enum log_level level, const char *text)
{
    if (level <= LOG_LEVEL_WARNING)
        dprintf(*(int *)cookie, "%s\n", text);
}

/* Open the logs as root, become nobody, and check; true if all that went well. */
static bool check_as_nobody(const char *log)
{
    struct user_check uc = {.config = config_file.config, .config_path = "t.ini"};
    struct access_logs_change *change;
    struct privileges nobody;
    struct log_target *target;

    uc.user = &nobody;
    if (privileges_lookup(&nobody, "nobody", NULL) < 0 ||
        log_target_open(&target, log, &nobody) < 0 ||
        access_logs_create(&uc.access_logs, &nobody) < 0 ||
        access_logs_prepare(uc.access_logs, &uc.config->server, 1 << 20, &change) < 0)
        return false;
    access_logs_commit(change);
    uc.log = target;
    if (privileges_drop(&nobody) < 0)
        return false;
    user_check(&uc);
    access_logs_close(uc.access_logs);
    log_target_close(target);
    return true;
}

/* What a start with ${text} says, in a process that is nobody's then; false without root. */
static bool start(const char *text, const char *log)
{
    int ends[2], status;
    size_t len = 0;
    ssize_t n;
    pid_t child;

    if (geteuid() != 0)
        return false;
    ck_assert_msg(config_file_load_text(text) == 0, "%s", config_file.problems);
    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        log_set_sink(&(struct log_sink){.write = say, .cookie = &ends[1]});
        _exit(check_as_nobody(log) ? 0 : 1);
    }
    close(ends[1]);
    while ((n = read(ends[0], said + len, sizeof(said) - 1 - len)) > 0)
        len += (size_t)n;
    said[len] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return true;
}

TEST(check, files_readable_by_all_are_not_warned_of)
{
    if (start(ECHO "idle_timeout = 1s\n", "stderr"))
        ck_assert_str_eq(said, "");
}

TEST(check, configuration_readable_by_root_only_is_warned_of)
{
    umask(0077);
    if (start(ECHO, "stderr"))
        ck_assert_str_eq(said,
                         "uid 65534 cannot load the configuration: t.ini:0: cannot be opened: "
                         "Permission denied; a reload would fail\n");
}

TEST(check, access_rules_readable_by_root_only_are_warned_of)
{
    char text[8192];

    text_file_write_text("rules", "10.0.0.0/8\n");
    ck_assert_int_eq(chmod("rules", 0600), 0);
    snprintf(text, sizeof(text), "%sallow = file:%s/rules\n", ECHO, dir);
    if (!start(text, "stderr"))
        return;
    ck_assert_ptr_nonnull(
        strstr(said, "cannot load the configuration: t.ini:4: [listen e] allow: "));
    ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);
}

TEST(check, logs_that_only_root_can_open_are_warned_of)
{
    char text[8192], log[4200], wanted[8192];

    ck_assert_int_eq(mkdir("private", 0700), 0);
    snprintf(text, sizeof(text), "%saccess_log = %s/private/a\n", ECHO, dir);
    snprintf(log, sizeof(log), "%s/private/log", dir);
    snprintf(wanted, sizeof(wanted),
             "log: cannot be reopened by uid 65534: Permission denied\n"
             "access log %s/private/a: cannot be reopened by uid 65534: Permission denied\n",
             dir);
    if (start(text, log))
        ck_assert_str_eq(said, wanted);
    unlink("private/a");
    unlink("private/log");
}

TEST(check, unchanged_user_is_not_warned)
{
    struct privileges same;
    struct user_check uc = {.user = &same, .config_path = "missing.ini"};

    log_lines_capture(LOG_LEVEL_WARNING);
    ck_assert_int_eq(privileges_lookup(&same, NULL, NULL), 0);
    user_check(&uc);
    ck_assert_uint_eq(log_lines_with(""), 0);
}
