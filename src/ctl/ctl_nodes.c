#include "ctl/ctl_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"

#define DEFAULT_TIMEOUT_NS (10 * NS_PER_S)
#define READY_INTERVAL_NS  (100 * NS_PER_MS)

const struct ctl_option ctl_nodes_ready_options[] = {
    {"wait", "DURATION", CTL_VALUE_DURATION, "wait until it is ready, at most this time", 0},
    {NULL, NULL, 0, NULL, 0},
};

/* ---- ready ---- */

/* Ask until the daemon is ready, for ${limit_ns}; 0: once. After a failure see c->problem. */
static enum ctl_exit ctl_nodes_wait_ready(struct ctl_context *c, int64_t limit_ns,
                                          struct ctl_answer *out)
{
    const struct ctl_request request = {.path = "/readyz", .wants_text = true};
    const struct timespec interval = {.tv_nsec = READY_INTERVAL_NS};
    int64_t end_ns = clock_now_ns() + limit_ns;

    for (;;) {
        enum ctl_exit code = ctl_context_try(c, &request, out);

        if (code == CTL_EXIT_OK || clock_now_ns() >= end_ns)
            return code;
        nanosleep(&interval, NULL);
    }
}

enum ctl_exit ctl_nodes_ready(struct ctl_context *c, const struct ctl_arguments *a)
{
    const char *wait = ctl_arguments_value(a, "wait");
    struct ctl_answer answer;
    enum ctl_exit code = ctl_nodes_wait_ready(c, wait ? ctl_value_ns(wait) : 0, &answer);

    if (code != CTL_EXIT_OK) {
        ctl_report("%s", c->problem);
        return code;
    }
    ctl_print_text(&answer);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

/* ---- one node ---- */

static int64_t ctl_nodes_timeout_ns(const struct ctl_arguments *a)
{
    const char *timeout = ctl_arguments_value(a, "timeout");

    return timeout ? ctl_value_ns(timeout) : DEFAULT_TIMEOUT_NS;
}

static enum ctl_exit ctl_nodes_open(struct ctl_context *c, const struct ctl_arguments *a,
                                    const char *address)
{
    *c = (struct ctl_context){.prints_json = ctl_arguments_has(a, "json")};
    return ctl_context_open(c, address, ctl_arguments_value(a, "token-file"),
                            ctl_nodes_timeout_ns(a));
}

static enum ctl_exit ctl_nodes_ask(const struct ctl_arguments *a, const char *address)
{
    struct ctl_context context;
    enum ctl_exit code = ctl_nodes_open(&context, a, address);

    if (code != CTL_EXIT_OK)
        return code;
    code = a->command->run(&context, a);
    ctl_context_close(&context);
    return code;
}

/* After a reload or upgrade. A new connection: the former one may be to the process that drains. */
static enum ctl_exit ctl_nodes_await(const struct ctl_arguments *a, const char *address)
{
    struct ctl_context context;
    struct ctl_answer answer;
    enum ctl_exit code = ctl_nodes_open(&context, a, address);

    if (code != CTL_EXIT_OK)
        return code;
    code = ctl_nodes_wait_ready(&context, ctl_nodes_timeout_ns(a), &answer);
    if (code == CTL_EXIT_OK)
        ctl_client_drop(&answer);
    else
        ctl_report("not ready: %s", context.problem);
    ctl_context_close(&context);
    return code;
}

/* ---- several nodes ---- */

/* The name at ${*list}, which is cut off it; NULL: none is left. */
static char *ctl_nodes_next(char **list)
{
    return strsep(list, ",");
}

static bool ctl_nodes_has(const char *list, const char *name)
{
    char *copy = ctl_memory_need(strdup(list)), *rest = copy, *other;
    bool has = false;

    while ((other = ctl_nodes_next(&rest)))
        has |= strcmp(other, name) == 0;
    free(copy);
    return has;
}

/* Is each of ${list} an address, and there once? Report what is wrong. */
static bool ctl_nodes_check(const char *list)
{
    char *copy = ctl_memory_need(strdup(list)), *rest = copy, *name;
    char problem[CTL_CONTEXT_PROBLEM_BYTES];
    struct ctl_address address;
    bool is_right = true;

    while (is_right && (name = ctl_nodes_next(&rest))) {
        if (ctl_address_parse(&address, name, problem, sizeof(problem)) < 0) {
            ctl_report("node '%s' %s", name, problem);
            is_right = false;
        } else if (rest && ctl_nodes_has(rest, name)) {
            ctl_report("node '%s' is named twice", name);
            is_right = false;
        }
    }
    free(copy);
    return is_right;
}

static enum ctl_exit ctl_nodes_ask_named(const struct ctl_arguments *a, const char *name)
{
    enum ctl_exit code;

    if (!ctl_arguments_has(a, "json")) {
        printf("==> %s <==\n", name);
        fflush(stdout); /* before a report on stderr */
    }
    ctl_report_name(name);
    code = ctl_nodes_ask(a, name);
    if (code == CTL_EXIT_OK && a->command->restarts)
        code = ctl_nodes_await(a, name);
    ctl_report_name(NULL);
    return code;
}

static enum ctl_exit ctl_nodes_ask_all(const struct ctl_arguments *a, char *list)
{
    enum ctl_exit worst = CTL_EXIT_OK;
    const char *name;

    while ((name = ctl_nodes_next(&list))) {
        enum ctl_exit code = ctl_nodes_ask_named(a, name);

        if (code > worst)
            worst = code;
        if (code == CTL_EXIT_OK || a->command->shows)
            continue;
        if (list)
            ctl_report("stopped at %s; nothing was asked of %s", name, list);
        break;
    }
    return worst;
}

enum ctl_exit ctl_nodes_run(const struct ctl_arguments *a)
{
    const char *nodes = ctl_arguments_value(a, "node");
    enum ctl_exit code;
    char *list;

    if (!nodes)
        return ctl_nodes_ask(a, ctl_arguments_value(a, "address"));
    if (ctl_arguments_has(a, "address")) {
        ctl_report("--node and --address exclude each other");
        return CTL_EXIT_FAILED;
    }
    if (strchr(nodes, ',') && (a->command->is_live || ctl_arguments_has(a, "follow"))) {
        ctl_report("%s shows one node at a time", a->command->name);
        return CTL_EXIT_FAILED;
    }
    if (!ctl_nodes_check(nodes))
        return CTL_EXIT_FAILED;
    list = ctl_memory_need(strdup(nodes));
    code = ctl_nodes_ask_all(a, list);
    free(list);
    return code;
}
