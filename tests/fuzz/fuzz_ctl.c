/*
 * Fuzz reactorctl with what a daemon, or something else behind its address, answers: any JSON is
 * printed as a table or refused, by each command.
 *
 * The first byte chooses the command. The client of HTTP is one that has the answer already: its
 * functions stand here in place of those of ctl/ctl_client.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "ctl/ctl_arguments.h"
#include "ctl/ctl_client.h"
#include "ctl/ctl_commands.h"
#include "ctl/ctl_context.h"
#include "ctl/ctl_top.h"
#include "ctl/ctl_top_sample.h"
#include "ctl/ctl_top_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With arguments; a line each. Those that show something once, and do not ask again for ever. */
static char *const lines[][6] = {
    {"status"},
    {"loops"},
    {"listeners"},
    {"upstreams"},
    {"sessions"},
    {"sessions", "--limit", "0"},
    {"events"},
    {"kill", "--yes", "w0.1"},
    {"kill", "--yes", "--listener", "front"},
    {"move", "w0.1", "--to", "worker-1"},
    {"shed", "back", "--percent", "50"},
    {"bans"},
    {"bans", "--limit", "0"},
    {"lift", "192.0.2.1"},
    {"drain", "back/a"},
    {"weight", "back/a", "7"},
    {"add", "back/b", "192.0.2.1:80"},
    {"remove", "back/a"},
    {"pause", "front"},
    {"resume", "front"},
    {"set", "io_ratio", "50"},
    {"reload"},
    {"confirm"},
    {"revert"},
    {"upgrade"},
    {"config"},
    {"reset"},
    {"metrics"},
    {"status", "--memory"},
    {"top"},
};
#define N_LINES       (sizeof(lines) / sizeof(lines[0]))
#define MOST_REQUESTS 8 /* of a command: pages */

static const char *body;
static size_t body_len;
static unsigned requests;

int ctl_client_open(struct ctl_client **out, const struct ctl_client_conf *conf)
{
    static char client;

    (void)conf;
    *out = (struct ctl_client *)&client;
    return 0;
}

void ctl_client_close(struct ctl_client *c)
{
    (void)c;
}

enum ctl_client_failure ctl_client_ask(struct ctl_client *c, const struct ctl_request *request,
                                       struct ctl_answer *out)
{
    (void)c;
    if (++requests > MOST_REQUESTS)
        return CTL_CLIENT_CUT;
    *out = (struct ctl_answer){.status = 200, .body = malloc(body_len + 1), .len = body_len};
    MUST(out->body != NULL);
    memcpy(out->body, body, body_len);
    out->body[body_len] = '\0';
    if (request->wants_text)
        return CTL_CLIENT_OK;
    out->json = json_loadb(body, body_len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(out->json))
        return CTL_CLIENT_OK;
    ctl_client_drop(out);
    return CTL_CLIENT_NO_HTTP;
}

void ctl_client_drop(struct ctl_answer *answer)
{
    free(answer->body);
    json_decref(answer->json);
    *answer = (struct ctl_answer){0};
}

bool ctl_client_knows(struct ctl_client *c, const char *path)
{
    (void)c;
    (void)path;
    return true;
}

int ctl_client_errno(const struct ctl_client *c)
{
    (void)c;
    return 0;
}

const char *ctl_client_detail(const struct ctl_client *c)
{
    (void)c;
    return "cut";
}

const char *ctl_client_version(void)
{
    return "none";
}

/* Of `top` the figures, as text and on a screen: the command waits between two samples. */
static void show_top(struct ctl_context *context)
{
    static struct ctl_top_sample none;
    struct ctl_top_sample before, now;
    struct ctl_top_view view = {.now = &now, .before = &none, .sort = "bytes"};

    if (ctl_top_sample_take(context, "bytes", 20, &before) != CTL_EXIT_OK)
        return;
    requests = 0;
    if (ctl_top_sample_take(context, "bytes", 20, &now) == CTL_EXIT_OK) {
        ctl_top_view_text(stdout, &view);
        view.before = &before;
        now.at_ns = before.at_ns + 1;
        ctl_top_view_text(stdout, &view);
        ctl_top_view_screen(stdout, &view, (struct ctl_terminal_size){80, 24});
        ctl_top_view_screen(stdout, &view, (struct ctl_terminal_size){1, 1});
        ctl_top_sample_drop(&now);
    }
    ctl_top_sample_drop(&before);
}

static void run(char *const *words, char *more)
{
    char *argv[12] = {"reactorctl", "--address", "/admin.sock"};
    struct ctl_context context = {0};
    struct ctl_arguments arguments;
    int argc = 3;

    for (; *words; words++)
        argv[argc++] = *words;
    if (more)
        argv[argc++] = more;
    if (ctl_arguments_parse(&arguments, &ctl_commands, argc, argv) < 0)
        return;
    context.prints_json = ctl_arguments_has(&arguments, "json");
    MUST(ctl_context_open(&context, "/admin.sock", NULL, 1) == CTL_EXIT_OK);
    if (arguments.command->run == ctl_top_show)
        show_top(&context);
    else
        arguments.command->run(&context, &arguments);
    ctl_context_close(&context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool is_quiet;

    if (!is_quiet)
        MUST(freopen("/dev/null", "w", stdout) != NULL);
    is_quiet = true;
    if (size == 0)
        return 0;
    body = (const char *)data + 1;
    body_len = size - 1;
    requests = 0;
    run(lines[data[0] % N_LINES], data[0] & 0x80 ? "--json" : NULL);
    return 0;
}
