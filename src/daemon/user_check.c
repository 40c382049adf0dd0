#include "daemon/user_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text_stream.h"
#include "config/config.h"
#include "log/access_logs.h"
#include "log/log_target.h"
#include "system/privileges.h"

/* Find the first error: warnings do not prevent a reload. */
static const char *user_check_first_problem(char *problems)
{
    char *line;

    while ((line = strsep(&problems, "\n")))
        if (*line != '\0' && !strstr(line, ": warning: "))
            return line;
    return strerror(ENOMEM);
}

static void user_check_config(const struct user_check *uc)
{
    struct config *again = NULL;
    char *problems = NULL;
    size_t size;
    FILE *out = open_memstream(&problems, &size);
    int rc;

    if (!out)
        return;
    rc = config_reload(&again, uc->config_path, uc->config, out);
    if (text_stream_close(out, &problems) < 0 && rc == 0)
        rc = -ENOMEM;
    if (rc < 0)
        log_warning("uid %ld cannot load the configuration: %s; a reload would fail",
                    (long)uc->user->uid, user_check_first_problem(problems));
    config_free(again);
    free(problems);
}

void user_check(const struct user_check *uc)
{
    int rc;

    if (!uc->user->change || uc->user->uid == 0)
        return;
    user_check_config(uc);
    rc = log_target_may_reopen(uc->log);
    if (rc < 0)
        log_warning("log: cannot be reopened by uid %ld: %s", (long)uc->user->uid, strerror(-rc));
    access_logs_check_user(uc->access_logs);
}
