#include "reload/reload_edits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/config.h"
#include "config/config_edits.h"
#include "reload/reload_internal.h"
#include "server/server_admin.h"
#include "server/server_conf.h"

/* Edits at a time. */
#define RELOAD_EDITS_MAX 1000

void reload_edit(struct reload *r, struct reload_edit *edit)
{
    edit->next = NULL;
    if (r->edits.last)
        r->edits.last->next = edit;
    else
        r->edits.first = edit;
    r->edits.last = edit;
}

bool reload_edits_are_applied(const struct reload *r)
{
    return r->state == RELOAD_EDITING;
}

bool reload_edits_are_open(const struct reload *r)
{
    return r->edits.first || reload_edits_are_applied(r);
}

static struct reload_edit *reload_edits_take(struct reload_edits *q)
{
    struct reload_edit *edit = q->first;

    q->first = edit->next;
    if (!q->first)
        q->last = NULL;
    edit->next = NULL;
    return edit;
}

static const char *reload_edits_why(int rc)
{
    switch (rc) {
    case -ENODATA:
        return "its name has no address (resolve_required), or its upstream would have no server";
    case -EMFILE:
    case -ENFILE: return "too few descriptors are left, see the log";
    case -ENOMEM: return "out of memory";
    case -E2BIG: return "an upstream would have too many servers";
    case -EAGAIN: return "too many changes under way (a worker loop may hang, see the log)";
    case -ECANCELED:
    case -ESHUTDOWN: return "draining";
    default: return strerror(-rc);
    }
}

static void reload_edits_answer_one(struct reload_edit *edit, int rc, const char *error)
{
    edit->rc = rc;
    edit->done(edit, error);
}

/* Answer the batch. */
static void reload_edits_answer(struct reload_edits *q, int rc)
{
    struct reload_edit *list = q->batch, *next;

    q->batch = NULL;
    for (unsigned i = 0; list; list = next, i++) {
        next = list->next;
        if (rc == 0 && q->n_results > i)
            list->result = q->results[i];
        reload_edits_answer_one(list, rc, rc < 0 ? reload_edits_why(rc) : NULL);
    }
    free(q->results);
    q->results = NULL;
    q->n_results = 0;
}

/* One of several edits has failed, not all of them: begin them again, each alone. */
static void reload_edits_separate(struct reload_edits *q)
{
    struct reload_edit *last = q->batch;

    for (q->n_alone = 1; last->next; last = last->next)
        q->n_alone++;
    last->next = q->first;
    if (!q->first)
        q->last = last;
    q->first = q->batch;
    q->batch = NULL;
    free(q->results);
    q->results = NULL;
    q->n_results = 0;
}

static void reload_edits_fail(struct reload *r, int rc)
{
    struct reload_edits *q = &r->edits;

    config_free(r->next);
    r->next = NULL;
    r->state = RELOAD_IDLE;
    if (q->batch && q->batch->next && !r->given_up && rc != -EAGAIN)
        reload_edits_separate(q);
    else
        reload_edits_answer(q, rc);
}

void reload_edits_finish(struct reload *r)
{
    struct config *before = r->running;

    if (r->rc < 0) {
        reload_edits_fail(r, r->rc);
    } else {
        if (r->next)
            r->running = r->next;
        else
            before = NULL; /* the workers have changed */
        r->next = NULL;
        r->state = RELOAD_IDLE;
        config_free(before);
        reload_edits_answer(&r->edits, 0);
    }
    if (!r->again || r->given_up)
        return;
    r->again = false;
    reload_begin(r);
}

/* Begin to use `next`, which has the edits of the batch. */
static void reload_edits_apply(struct reload *r)
{
    const struct server_reload edit = {.conf = &r->next->server,
                                       .edits = r->edits.results,
                                       .n_edits = r->edits.n_results,
                                       .done = reload_applied,
                                       .cookie = r};
    int rc;

    r->state = RELOAD_EDITING;
    r->rc = -ECANCELED; /* if the server stops, done() is not called */
    rc = server_edit(r->process->server, &edit);
    if (rc < 0)
        reload_edits_fail(r, rc);
}

static void reload_edits_undo_all(struct reload *r)
{
    struct reload_edits *q = &r->edits;
    unsigned n = config_edits_count(r->running);

    q->batch = reload_edits_take(q);
    if (n == 0) {
        reload_edits_answer(q, 0);
        return;
    }
    log_notice(
        "reset: servers added or removed by an administrator, as in the configuration again: "
        "%u",
        n);
    r->next = config_edits_base(r->running);
    reload_edits_apply(r);
}

/* ---- the number of workers ---- */

static void reload_edits_begin_resize(struct reload *r, struct server_reload *resize)
{
    int rc;

    resize->conf = &r->running->server;
    resize->done = reload_applied;
    resize->cookie = r;
    r->state = RELOAD_EDITING;
    r->rc = -ECANCELED; /* if the server stops, done() is not called */
    rc = server_resize(r->process->server, resize);
    if (rc < 0)
        reload_edits_fail(r, rc);
}

static void reload_edits_resize(struct reload *r)
{
    struct reload_edits *q = &r->edits;
    struct server_workers_conf configured;

    q->batch = reload_edits_take(q);
    if (q->batch->workers == 0 && server_admin_threads(r->process->server, &configured) == 0) {
        reload_edits_answer(q, 0);
        return;
    }
    reload_edits_begin_resize(r, &(struct server_reload){.workers = q->batch->workers});
}

/* Failures are logged by the server; the load is measured anew before the next try. */
static void reload_edits_scale(struct reload *r)
{
    struct server_reload resize = {.workers = 0};

    if (r->state == RELOAD_IDLE && server_scale(r->process->server, &resize))
        reload_edits_begin_resize(r, &resize);
}

/* ---- servers ---- */

/* Make ${edit} in ${e}. False: only the end of all is left, out of memory. */
static bool reload_edits_make(struct reload_edits *q, struct config_edits *e,
                              struct reload_edit *edit, struct reload_edit ***end)
{
    struct config_edit one = {
        .upstream = edit->upstream, .server = edit->server, .line = edit->line};
    int rc = config_edits_server(e, &one);

    if (rc < 0 && rc != -ENOMEM) {
        reload_edits_answer_one(edit, rc, one.problem);
        return true;
    }
    **end = edit;
    *end = &edit->next;
    q->results[q->n_results++] = (struct server_edit){
        .upstream = edit->upstream, .server = edit->server, .is_added = edit->line != NULL};
    /* A name that does not resolve must not fail others. */
    if (one.is_looked_up)
        q->n_left = 0;
    return rc == 0;
}

static unsigned reload_edits_count(struct reload_edits *q)
{
    unsigned n = 0;

    if (q->n_alone > 0) {
        q->n_alone--;
        return 1;
    }
    for (const struct reload_edit *edit = q->first;
         edit && edit->kind == RELOAD_EDIT_SERVER && n < RELOAD_EDITS_MAX; edit = edit->next)
        n++;
    return n;
}

static int reload_edits_make_all(struct reload *r)
{
    struct reload_edits *q = &r->edits;
    struct reload_edit **end = &q->batch;
    struct config_edits *e;
    int rc;

    q->n_left = reload_edits_count(q);
    q->results = calloc(q->n_left, sizeof(q->results[0]));
    rc = q->results ? config_edits_begin(&e, r->running, q->n_left) : -ENOMEM;
    if (rc < 0) {
        q->batch = reload_edits_take(q); /* the next one may go better */
        return rc;
    }
    while (q->n_left > 0) {
        q->n_left--;
        if (!reload_edits_make(q, e, reload_edits_take(q), &end)) {
            config_edits_cancel(e);
            return -ENOMEM;
        }
    }
    if (q->batch)
        r->next = config_edits_end(e);
    else
        config_edits_cancel(e);
    return 0;
}

static void reload_edits_refuse(struct reload_edits *q, const char *why)
{
    while (q->first)
        reload_edits_answer_one(reload_edits_take(q), -EBUSY, why);
}

void reload_edits_step(struct reload *r, const char *obstacle)
{
    struct reload_edits *q = &r->edits;
    int rc;

    if (obstacle)
        reload_edits_refuse(q, obstacle);
    while (q->first && r->state == RELOAD_IDLE) {
        if (q->first->kind != RELOAD_EDIT_SERVER) {
            if (q->first->kind == RELOAD_EDIT_UNDO)
                reload_edits_undo_all(r);
            else
                reload_edits_resize(r);
            continue;
        }
        rc = reload_edits_make_all(r);
        if (rc < 0)
            reload_edits_fail(r, rc);
        else if (q->batch)
            reload_edits_apply(r);
        else
            reload_edits_answer(q, 0); /* all were refused */
    }
    if (!obstacle)
        reload_edits_scale(r);
}

void reload_edits_drop(struct reload *r)
{
    struct reload_edits *q = &r->edits;
    struct reload_edit *list[] = {q->batch, q->first}, *next;

    q->batch = q->first = q->last = NULL;
    for (unsigned i = 0; i < ARRAY_LEN(list); i++)
        for (; list[i]; list[i] = next) {
            next = list[i]->next;
            reload_edits_answer_one(list[i], -ESHUTDOWN, RELOAD_EDITS_ENDED);
        }
}
