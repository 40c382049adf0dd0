#include "handover/server_state.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/ref.h"
#include "base/log.h"
#include "base/text_stream.h"
#include "engine/loop.h"
#include "listen/listeners.h"
#include "server/server_parts.h"
#include "server/upstreams.h"
#include "stats/counters_set.h"
#include "upstream/upstream.h"

struct server_state_line {
    const char *kind; /* listen, upstream or server */
    const char *name;
    const char *values;
    uint64_t of; /* number of the counters that have ${values}; 0: none */
};

struct server_state_lines {
    char *text; /* cut into NUL-terminated words */
    struct server_state_line *list;
    unsigned n;
};

/* What has been added, sorted. Used by the control loop, or main before start. */
struct server_state_known {
    struct ref references;
    struct server_state_lines lines;
};

struct server_state {
    struct server *server;
    char *text; /* the last report */
    struct server_state_known *known;
};

/* A report on the way to the control loop. */
struct server_state_update {
    struct task task;
    struct server *server;
    bool is_first;
    struct server_state_known *known;
    struct server_state_lines now;
};

static void server_state_lines_close(struct server_state_lines *lines)
{
    free(lines->list);
    free(lines->text);
    *lines = (struct server_state_lines){.n = 0};
}

/* End the word at ${at} with NUL at ${mark}; returns the text after it. */
static char *server_state_cut(char *at, char mark)
{
    char *end = strchr(at, mark);

    if (!end)
        return strchr(at, '\0');
    *end = '\0';
    return end + 1;
}

static int server_state_lines_open(struct server_state_lines *out, const char *text)
{
    struct server_state_lines lines = {.text = strdup(text)};
    unsigned n = 1;

    if (!lines.text)
        return -ENOMEM;
    for (const char *c = text; *c; c++)
        n += *c == '\n';
    lines.list = calloc(n, sizeof(lines.list[0]));
    if (!lines.list) {
        free(lines.text);
        return -ENOMEM;
    }
    for (char *at = lines.text; *at;) {
        struct server_state_line *line = &lines.list[lines.n++];
        char *next = server_state_cut(at, '\n');
        char *name = server_state_cut(at, ' ');

        *line = (struct server_state_line){
            .kind = at, .name = name, .values = server_state_cut(name, ' ')};
        at = next;
    }
    *out = lines;
    return 0;
}

static int server_state_compare(const void *a, const void *b)
{
    const struct server_state_line *first = a, *second = b;
    int order = strcmp(first->name, second->name);

    return order != 0 ? order : strcmp(first->kind, second->kind);
}

static void server_state_sort(struct server_state_lines *lines)
{
    qsort(lines->list, lines->n, sizeof(lines->list[0]), server_state_compare);
}

static int server_state_sorted_open(struct server_state_lines *out, const char *text)
{
    int rc = server_state_lines_open(out, text);

    if (rc == 0)
        server_state_sort(out);
    return rc;
}

/* Find the line of ${wanted} in ${sorted}; NULL: not found. */
static const struct server_state_line *server_state_find(const struct server_state_lines *sorted,
                                                         const struct server_state_line *wanted)
{
    return bsearch(wanted, sorted->list, sorted->n, sizeof(sorted->list[0]), server_state_compare);
}

static void server_state_known_release(struct server_state_known *known)
{
    if (!ref_release(&known->references))
        return;
    server_state_lines_close(&known->lines);
    free(known);
}

/* ---- control loop, or main before start ---- */

/* Add ${report} to the object of ${line}; if there is none, set ${report}->of to 0. */
static int server_state_continue(const struct server *sv, const struct server_state_line *line,
                                 struct counters_report *report, bool health)
{
    const struct server_parts parts = server_parts(sv);
    size_t len = strcspn(line->name, "/");
    bool is_server = line->name[len] == '/';
    struct upstream *up;

    if (strcmp(line->kind, "listen") == 0) {
        listeners_continue(parts.listeners, line->name, report);
        return 0;
    }
    up = upstreams_configured(parts.upstreams, line->name, len);
    if (up && strcmp(line->kind, "server") == 0 && is_server)
        return upstream_state_continue_server(up, line->name + len + 1, report, health);
    if (up && strcmp(line->kind, "upstream") == 0 && !is_server)
        upstream_state_continue(up, report);
    else
        report->of = 0;
    return 0;
}

/*
 * Add the increase of ${line} over ${known}, its line of before, or NULL. What no object has stays
 * so: its sessions are those of an object that was removed.
 */
static int server_state_add(const struct server_state_update *u, struct server_state_line *line,
                            const struct server_state_line *known)
{
    struct counters_report report = {.text = line->values};
    int rc;

    if (known && (known->of == 0 || strcmp(line->values, known->values) == 0)) {
        line->of = known->of;
        return 0;
    }
    if (known) {
        report.before = known->values;
        report.of = known->of;
    }
    rc = server_state_continue(u->server, line, &report, u->is_first);
    line->of = rc < 0 ? 0 : report.of;
    return rc;
}

static void server_state_apply(struct server_state_update *u)
{
    struct server_state_lines before = u->known->lines;
    int rc = 0;

    for (unsigned i = 0; i < u->now.n; i++) {
        struct server_state_line *line = &u->now.list[i];
        int one = server_state_add(u, line, server_state_find(&before, line));

        rc = rc < 0 ? rc : one;
    }
    server_state_sort(&u->now);
    u->known->lines = u->now;
    u->now = before;
    if (rc < 0)
        log_warning("upgrade: some counters of a replaced process are lost: %s", strerror(-rc));
}

static struct server_state_update *server_state_update_of(struct task *t)
{
    return CONTAINER_OF(t, struct server_state_update, task);
}

static void server_state_free_update(struct server_state_update *u)
{
    server_state_lines_close(&u->now);
    server_state_known_release(u->known);
    free(u);
}

static void server_state_run(struct task *t)
{
    struct server_state_update *u = server_state_update_of(t);

    server_state_apply(u);
    server_state_free_update(u);
}

static void server_state_drop(struct task *t)
{
    server_state_free_update(server_state_update_of(t));
}

static const struct task_type server_state_update_type = {
    .name = "counters of another process", .run = server_state_run, .drop = server_state_drop};

/* ---- main ---- */

/* Have the objects of ${text}, which is counted, known. */
static int server_state_know(const struct server_state *st, const char *text)
{
    struct server_state_lines *lines = &st->known->lines;
    int rc = server_state_sorted_open(lines, text);

    for (unsigned i = 0; rc == 0 && i < lines->n; i++) {
        struct counters_report nothing = {.text = ""};

        rc = server_state_continue(st->server, &lines->list[i], &nothing, false);
        lines->list[i].of = nothing.of;
    }
    return rc;
}

int server_state_create(struct server_state **out, struct server *sv, const char *text)
{
    struct server_state *st = calloc(1, sizeof(*st));
    int rc = -ENOMEM;

    if (!st)
        return rc;
    st->server = sv;
    st->text = strdup(text);
    st->known = calloc(1, sizeof(*st->known));
    if (st->known) {
        ref_init(&st->known->references);
        rc = st->text ? server_state_know(st, text) : rc;
    }
    if (rc < 0) {
        server_state_destroy(st);
        return rc;
    }
    *out = st;
    return 0;
}

static int server_state_create_update(struct server_state_update **out,
                                      const struct server_state *st, const char *text)
{
    struct server_state_update *u = calloc(1, sizeof(*u));
    int rc;

    if (!u)
        return -ENOMEM;
    u->task.type = &server_state_update_type;
    u->server = st->server;
    u->is_first = *st->text == '\0';
    u->known = st->known;
    ref_hold(&st->known->references);
    rc = server_state_lines_open(&u->now, text);
    if (rc < 0) {
        server_state_free_update(u);
        return rc;
    }
    *out = u;
    return 0;
}

/*
 * Copy ${text}, and the lines of ${last} that ${text} lacks: a removed server may return, and may
 * still have open sessions.
 */
static int server_state_keep(char **out, const char *text, const char *last)
{
    struct server_state_lines now = {.n = 0}, before = {.n = 0};
    int rc = server_state_sorted_open(&now, text);
    size_t len;
    FILE *f = NULL;

    if (rc == 0)
        rc = server_state_lines_open(&before, last);
    if (rc == 0) {
        f = open_memstream(out, &len);
        rc = f ? 0 : -ENOMEM;
    }
    if (f)
        fputs(text, f);
    for (unsigned i = 0; f && i < before.n; i++)
        if (!server_state_find(&now, &before.list[i]))
            fprintf(f, "%s %s %s\n", before.list[i].kind, before.list[i].name,
                    before.list[i].values);
    server_state_lines_close(&now);
    server_state_lines_close(&before);
    return f ? text_stream_close(f, out) : rc;
}

int server_state_report(struct server_state *st, const char *text)
{
    struct loop *control = server_parts(st->server).control;
    struct server_state_update *u;
    char *kept;
    int rc = server_state_keep(&kept, text, st->text);

    if (rc < 0)
        return rc;
    rc = server_state_create_update(&u, st, kept);
    if (rc < 0) {
        free(kept);
        return rc;
    }
    if (loop_state(control) == LOOP_NOT_STARTED)
        server_state_run(&u->task);
    else
        rc = loop_submit(control, LOOP_CONTROL, &u->task);
    if (rc < 0) {
        server_state_free_update(u);
        free(kept);
        return rc;
    }
    free(st->text);
    st->text = kept;
    return 0;
}

/* Write ${lines} as if every open session had ended. */
static int server_state_write_closed(char **out, const struct server_state_lines *lines, bool gave)
{
    size_t len;
    FILE *f = open_memstream(out, &len);
    int rc = f ? 0 : -ENOMEM;

    for (unsigned i = 0; i < lines->n && rc == 0; i++) {
        const struct server_state_line *line = &lines->list[i];
        char *closed;

        rc = counters_set_close_text(&closed, line->values, gave);
        if (rc < 0)
            break;
        fprintf(f, "%s %s%s\n", line->kind, line->name, closed);
        free(closed);
    }
    if (f && text_stream_close(f, out) < 0)
        rc = -ENOMEM;
    if (rc < 0 && f)
        free(*out);
    return rc;
}

int server_state_close(struct server_state *st, bool gave)
{
    struct server_state_lines lines;
    char *text;
    int rc = server_state_lines_open(&lines, st->text);

    if (rc < 0)
        return rc;
    rc = server_state_write_closed(&text, &lines, gave);
    server_state_lines_close(&lines);
    if (rc < 0)
        return rc;
    rc = server_state_report(st, text);
    free(text);
    return rc;
}

const char *server_state_text(const struct server_state *st)
{
    return st->text;
}

void server_state_destroy(struct server_state *st)
{
    if (!st)
        return;
    if (st->known)
        server_state_known_release(st->known);
    free(st->text);
    free(st);
}
