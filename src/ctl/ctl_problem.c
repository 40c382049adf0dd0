#include "ctl/ctl_problem.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_units.h"

#define HTTP_UNAUTHORIZED 401
#define HTTP_NOT_FOUND    404
#define HTTP_TIMEOUT      408
#define HTTP_UNAVAILABLE  503

#define SAY(c, ...) snprintf((c)->problem, sizeof((c)->problem), __VA_ARGS__)

/* Append to c->problem. */
PRINTF_LIKE(2, 3)
static void ctl_problem_add(struct ctl_context *c, const char *format, ...)
{
    size_t len = strlen(c->problem);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(c->problem + len, sizeof(c->problem) - len, format, arguments);
    va_end(arguments);
}

/* Say that the user may not connect, with owner and mode of the socket. */
static void ctl_problem_no_permission(struct ctl_context *c)
{
    const char *path = c->conf.address.path;
    const struct passwd *user;
    const struct group *group;
    struct stat st;

    SAY(c, "no permission to connect to %s", path);
    if (stat(path, &st) < 0) {
        ctl_problem_add(c,
                        ", or to enter its directory: use sudo, or a user whom the directory lets "
                        "in");
        return;
    }
    user = getpwuid(st.st_uid);
    group = getgrgid(st.st_gid);
    ctl_problem_add(c, ": it belongs to user %s, group %s, mode %04o", user ? user->pw_name : "?",
                    group ? group->gr_name : "?", (unsigned)st.st_mode & 07777);
    if (st.st_mode & S_IWGRP)
        ctl_problem_add(c, ". Run reactorctl as %s (sudo), or join the group",
                        user ? user->pw_name : "its user");
    else
        ctl_problem_add(c,
                        ". Run reactorctl as %s (sudo); with mode = 0660 in [admin] its group may "
                        "connect, too",
                        user ? user->pw_name : "its user");
}

static void ctl_problem_unreachable(struct ctl_context *c)
{
    const char *text = c->conf.address.text;
    int error = ctl_client_errno(c->client);

    if (c->conf.address.path && (error == EACCES || error == EPERM))
        ctl_problem_no_permission(c);
    else if (error == 0)
        SAY(c, "cannot reach %s: %s. Is the address right (-s, $" CTL_ADDRESS_ENVIRONMENT ")?",
            text, ctl_client_detail(c->client));
    else
        SAY(c,
            "cannot reach %s: %s. Is reactord running, and is this `address` of [admin] in its "
            "configuration? -s or $" CTL_ADDRESS_ENVIRONMENT " names another",
            text, strerror(error));
}

static void ctl_problem_time_out(struct ctl_context *c)
{
    struct ctl_memory_text time;

    ctl_memory_text_open(&time);
    ctl_units_put_seconds(time.file, (double)c->conf.timeout_ns / (double)NS_PER_S);
    SAY(c,
        "no complete answer from %s within %s: reactord hangs, or is busy; --timeout waits longer",
        c->conf.address.text, ctl_memory_text_close(&time));
    free(time.bytes);
}

void ctl_problem_of_failure(struct ctl_context *c, enum ctl_client_failure failure)
{
    const char *text = c->conf.address.text;

    switch (failure) {
    case CTL_CLIENT_UNREACHABLE: ctl_problem_unreachable(c); break;
    case CTL_CLIENT_TIMEOUT: ctl_problem_time_out(c); break;
    case CTL_CLIENT_CUT:
        SAY(c,
            "the answer of %s was cut: did reactord stop or restart? An action may have been done",
            text);
        break;
    case CTL_CLIENT_TOO_LARGE: SAY(c, "the answer of %s is too large", text); break;
    case CTL_CLIENT_NO_HTTP:
        SAY(c, "the answer of %s is not reactord's: is this `address` of [admin]?", text);
        break;
    case CTL_CLIENT_CANCELLED: SAY(c, "cancelled"); break;
    default: SAY(c, "%s: %s", text, ctl_client_detail(c->client)); break;
    }
}

/*
 * After a 404: is ${path} unknown to the daemon, because it is older? False: the object in ${path}
 * is unknown.
 */
static bool ctl_problem_is_older(struct ctl_context *c, const char *path)
{
    char *plain = ctl_memory_need(strdup(path));
    bool knows;

    plain[strcspn(plain, "?")] = '\0';
    knows = ctl_client_knows(c->client, plain);
    free(plain);
    return !knows;
}

/* Add the messages about a refused configuration, a line each. */
static void ctl_problem_add_messages(struct ctl_context *c, const json_t *messages)
{
    const json_t *message;
    size_t i;

    json_array_foreach(messages, i, message)
    {
        if (json_is_string(message))
            ctl_problem_add(c, "\n  %s", json_string_value(message));
    }
}

static void ctl_problem_add_advice(struct ctl_context *c, unsigned status)
{
    if (status == HTTP_UNAUTHORIZED && c->conf.address.path == NULL)
        ctl_problem_add(c, " (--token-file FILE: the daemon's `token_file` of [admin])");
    else if (status == HTTP_TIMEOUT)
        ctl_problem_add(c, " (`request_timeout` of [admin])");
}

enum ctl_exit ctl_problem_of_refusal(struct ctl_context *c, const struct ctl_request *request,
                                     const struct ctl_answer *answer)
{
    const char *error = json_string_value(json_object_get(answer->json, "error"));

    if (answer->status == HTTP_NOT_FOUND && ctl_problem_is_older(c, request->path)) {
        SAY(c,
            "reactord at %s does not know %.*s: it is older than this reactorctl "
            "(" REACTORD_VERSION "), or another program",
            c->conf.address.text, (int)strcspn(request->path, "?"), request->path);
        return CTL_EXIT_REFUSED;
    }
    if (!error && request->wants_text && answer->status == HTTP_UNAVAILABLE) {
        SAY(c, "%.*s", (int)strcspn(answer->body, "\n"), answer->body);
        return CTL_EXIT_REFUSED;
    }
    if (!error) {
        SAY(c, "%s answers %u without a reason: is this `address` of [admin] of reactord?",
            c->conf.address.text, answer->status);
        return CTL_EXIT_FAILED;
    }
    SAY(c, "%s", error);
    ctl_problem_add_advice(c, answer->status);
    ctl_problem_add_messages(c, json_object_get(answer->json, "messages"));
    return CTL_EXIT_REFUSED;
}
