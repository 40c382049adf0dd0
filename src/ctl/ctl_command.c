#include "ctl/ctl_command.h"

#include <stddef.h>
#include <string.h>

#include "base/must.h"
#include "ctl/ctl_filter.h"
#include "ctl/ctl_help.h"
#include "ctl/ctl_kill.h"
#include "ctl/ctl_pause.h"
#include "ctl/ctl_process.h"
#include "ctl/ctl_servers.h"
#include "ctl/ctl_sessions.h"
#include "ctl/ctl_show.h"
#include "ctl/ctl_top.h"

const struct ctl_option ctl_command_global_options[] = {
    {"address", "ADDRESS", CTL_VALUE_ADDRESS, "admin interface: /PATH, HOST:PORT or [IPV6]:PORT",
     's'},
    {"token-file", "FILE", CTL_VALUE_FILE, "file with the token of an interface on TCP", 0},
    {"timeout", "DURATION", CTL_VALUE_DURATION, "time limit for an answer (10s)", 0},
    {"json", NULL, 0, "print reactord's JSON unchanged", 0},
    {"help", NULL, 0, "write help and exit", 'h'},
    {"version", NULL, 0, "write versions and exit", 'V'},
    {NULL, NULL, 0, NULL, 0},
};

static const struct ctl_command commands[] = {
    {.name = "status", .help = "show version, state, reloads and upgrades", .run = ctl_show_status},
    {.name = "loops", .help = "show the event loops", .run = ctl_show_loops},
    {.name = "listeners", .help = "show the listeners", .run = ctl_show_listeners},
    {.name = "upstreams",
     .help = "show the upstreams and their servers",
     .run = ctl_show_upstreams},
    {.name = "sessions",
     .options = {ctl_filter_options, ctl_sessions_options},
     .help = "list sessions",
     .more = "Lists the sessions that match all filters.",
     .run = ctl_sessions_show},
    {.name = "top",
     .options = {ctl_top_options},
     .help = "show a live view of loops, listeners, upstreams and top sessions",
     .more = "Keys: q quits, s changes the sort key of sessions, p pauses.\n"
             "Without a terminal the figures of one interval are written once.",
     .run = ctl_top_show},
    {.name = "kill",
     .words = {{"ID", CTL_VALUE_SESSION_ID, true}},
     .options = {ctl_filter_options, ctl_kill_options},
     .help = "end one session, or all that match filters",
     .more = "Without an ID, a filter or --all is required.",
     .run = ctl_kill_sessions},
    {.name = "shed",
     .words = {{"UPSTREAM[/SERVER]", CTL_VALUE_GROUP, false}},
     .options = {ctl_kill_shed_options},
     .help = "end a share of the sessions of an upstream or a server, over a time",
     .more = "The idlest sessions end first.",
     .run = ctl_kill_shed},
    {.name = "drain",
     .words = {{"UPSTREAM/SERVER", CTL_VALUE_SERVER, false}},
     .options = {ctl_servers_wait_options},
     .help = "stop new sessions to a server; open sessions go on",
     .run = ctl_servers_drain},
    {.name = "disable",
     .words = {{"UPSTREAM/SERVER", CTL_VALUE_SERVER, false}},
     .options = {ctl_servers_wait_options},
     .help = "stop new sessions to a server, and its health checks",
     .run = ctl_servers_disable},
    {.name = "enable",
     .words = {{"UPSTREAM/SERVER", CTL_VALUE_SERVER, false}},
     .help = "undo drain and disable",
     .run = ctl_servers_enable},
    {.name = "weight",
     .words = {{"UPSTREAM/SERVER", CTL_VALUE_SERVER, false}, {"WEIGHT", CTL_VALUE_NUMBER, false}},
     .help = "set the weight of a server",
     .run = ctl_servers_weight},
    {.name = "pause",
     .words = {{"LISTENER|UPSTREAM", CTL_VALUE_PAUSABLE, false}},
     .options = {ctl_pause_options},
     .help = "hold new connections of a listener or to an upstream",
     .more = "If both have the same name, write listener:NAME or upstream:NAME.",
     .run = ctl_pause_begin},
    {.name = "resume",
     .words = {{"LISTENER|UPSTREAM", CTL_VALUE_PAUSABLE, false}},
     .options = {ctl_pause_resume_options},
     .help = "end a pause, and release the connections that it holds",
     .run = ctl_pause_end},
    {.name = "set",
     .words = {{"NAME", CTL_VALUE_SETTING, false}, {"VALUE", CTL_VALUE_TEXT, false}},
     .help = "change io_ratio or log_level until the next restart",
     .run = ctl_process_set},
    {.name = "reload",
     .options = {ctl_process_reload_options},
     .help = "read the configuration again and apply it",
     .run = ctl_process_reload},
    {.name = "confirm", .help = "keep an unconfirmed configuration", .run = ctl_process_confirm},
    {.name = "revert",
     .help = "restore the configuration before an unconfirmed reload",
     .run = ctl_process_revert},
    {.name = "upgrade",
     .help = "replace the running program with the installed one",
     .run = ctl_process_upgrade},
    {.name = "config", .help = "write the running configuration", .run = ctl_show_config},
    {.name = "reset",
     .help = "undo run-time changes of weights, states and settings",
     .run = ctl_process_reset},
    {.name = "metrics",
     .help = "write all figures in the text format of Prometheus",
     .run = ctl_show_metrics},
    {.name = "help",
     .words = {{"COMMAND", CTL_VALUE_COMMAND, true}},
     .help = "list the commands, or explain one",
     .offline = true,
     .run = ctl_help_show},
};

const struct ctl_command *ctl_command_at(unsigned i)
{
    return i < ARRAY_LEN(commands) ? &commands[i] : NULL;
}

const struct ctl_command *ctl_command_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}
