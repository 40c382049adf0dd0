#include "admin/route_figures.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "admin/admin_answer.h"
#include "admin/admin_request.h"
#include "admin/admin_settings.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "base/text.h"
#include "engine/loop.h"
#include "server/server_admin.h"
#include "server/server_figures.h"
#include "sessions/session_bytes.h"
#include "stats/exposition.h"
#include "stats/figure.h"
#include "stats/figure_json.h"

/* Time limit of a step, which always finishes its last object. */
#define ROUTE_FIGURES_STEP_NS (200 * NS_PER_US)

/*
 * Maximum wait for workers to count the bytes of open sessions; bytes counted later are left out.
 */
#define ROUTE_FIGURES_BYTES_NS (100 * NS_PER_MS)

/* Maximum of answers at a time: with 1,000 servers each answer takes some megabytes. */
#define ROUTE_FIGURES_AT_ONCE 16

/* An answer that is being made. */
struct route_figures_work {
    struct admin_request *request;
    struct task task;
    struct server_figures *walk;   /* NULL: all objects were shown */
    struct exposition *exposition; /* NULL: the answer is JSON */
    struct figure_json json;
    const char *key; /* name of the JSON array */
    struct text text;
};

/* Figures of the process, from struct admin_status. */
struct route_figures_process {
    uint64_t reloads, reloads_failed;
    unsigned old_processes;
};

static const struct figure route_figures_process_rows[] = {
    FIGURE_OF(struct route_figures_process, COUNTER, NUMBER, reloads, "Reloads that were done."),
    FIGURE_OF(struct route_figures_process, COUNTER, NUMBER, reloads_failed,
              "Reloads that were refused or failed."),
    FIGURE_OF(struct route_figures_process, GAUGE, NUMBER, old_processes,
              "Replaced processes that still drain."),
};

static const struct figure_table route_figures_process_table = {
    .is_not_logged = true, FIGURE_TABLE(struct route_figures_process, route_figures_process_rows)};

static void route_figures_show_process(const struct admin *a, struct figure_visitor *v)
{
    const struct figure_object process = {.subject = FIGURE_PROCESS};
    struct route_figures_process view;
    struct admin_status s;

    a->ops.status(a->ops.cookie, &s);
    view = (struct route_figures_process){
        .reloads = s.reloads, .reloads_failed = s.reloads_failed, .old_processes = s.old_processes};
    figure_show(v, &route_figures_process_table, &process, &view);
    a->ops.figures(a->ops.cookie, v);
}

static void route_figures_free(struct route_figures_work *w)
{
    server_figures_end(w->walk);
    exposition_destroy(w->exposition);
    text_free(&w->text);
    free(w);
}

static void route_figures_refuse(struct route_figures_work *w, const char *why)
{
    struct admin_request *rq = w->request;

    route_figures_free(w);
    admin_answer_error(rq, 503, "%s", why);
}

static void route_figures_answer(struct route_figures_work *w)
{
    struct admin_request *rq = w->request;
    const char *type = w->exposition ? EXPOSITION_CONTENT_TYPE : "application/json";
    char *text = w->text.bytes;
    size_t n = w->text.n;

    w->text = (struct text){.bytes = NULL};
    route_figures_free(w);
    admin_answer_text(rq, 200, type, text, n);
}

static struct figure_visitor *route_figures_visitor(struct route_figures_work *w)
{
    return w->exposition ? exposition_visitor(w->exposition) : &w->json.visitor;
}

/* Add an object to the text. 0: the text is complete; 1: there is more to do; -ENOMEM. */
static int route_figures_step(struct route_figures_work *w)
{
    if (w->walk && server_figures_step(w->walk, route_figures_visitor(w)))
        return w->text.failed ? -ENOMEM : 1;
    server_figures_end(w->walk);
    w->walk = NULL;
    if (w->exposition)
        return exposition_write(w->exposition, &w->text);
    figure_json_end(&w->json);
    text_puts(&w->text, "}\n");
    return w->text.failed ? -ENOMEM : 0;
}

static void route_figures_run(struct task *t)
{
    struct route_figures_work *w = CONTAINER_OF(t, struct route_figures_work, task);
    int64_t until_ns = clock_now_ns() + ROUTE_FIGURES_STEP_NS;
    int rc;

    do
        rc = route_figures_step(w);
    while (rc > 0 && clock_now_ns() < until_ns);
    if (rc == 0)
        route_figures_answer(w);
    else if (rc < 0)
        route_figures_refuse(w, "out of memory");
    else if (loop_submit(admin_loop(w->request), LOOP_TAIL, &w->task) < 0)
        route_figures_refuse(w, "the process ends");
}

static void route_figures_drop(struct task *t)
{
    route_figures_refuse(CONTAINER_OF(t, struct route_figures_work, task), "the process ends");
}

static const struct task_type route_figures_type = {
    .name = "figures", .run = route_figures_run, .drop = route_figures_drop};

/*
 * Begin an answer; NULL: out of memory. ${key} is the name of the JSON array of ${subject}, or NULL
 * for metrics.
 */
static struct route_figures_work *route_figures_begin(struct admin_request *rq, const char *key,
                                                      enum figure_subject subject)
{
    struct admin *a = admin_of(rq);
    const struct server_figures_conf conf = {
        .max_servers = key ? UINT_MAX : admin_settings_metrics_servers(a)};
    struct route_figures_work *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->request = rq;
    w->task.type = &route_figures_type;
    if (server_figures_begin(&w->walk, admin_server(rq), &conf) < 0 ||
        (!key && exposition_create(&w->exposition) < 0)) {
        route_figures_free(w);
        return NULL;
    }
    if (key) {
        text_printf(&w->text, "{\"%s\":", key);
        figure_json_begin(&w->json, subject, &w->text);
    }
    return w;
}

static void route_figures_counted(void *cookie)
{
    struct route_figures_work *w = cookie;

    route_figures_run(&w->task);
}

static void route_figures_handle(struct admin_request *rq, const char *key,
                                 enum figure_subject subject)
{
    struct admin *a = admin_of(rq);
    struct session_scan_workers workers;
    struct route_figures_work *w;

    if (a->n_figures >= ROUTE_FIGURES_AT_ONCE) {
        admin_answer_error(rq, 503, "too many at a time: %d such answers are being sent",
                           ROUTE_FIGURES_AT_ONCE);
        return;
    }
    rq->has_figures = true;
    a->n_figures++;
    w = route_figures_begin(rq, key, subject);
    if (!w) {
        admin_answer_error(rq, 503, "out of memory");
        return;
    }
    if (!key)
        route_figures_show_process(a, route_figures_visitor(w));
    workers = server_admin_workers(a->server);
    if (subject == FIGURE_LOOP ||
        session_bytes_begin(&workers, ROUTE_FIGURES_BYTES_NS, route_figures_counted, w) < 0)
        route_figures_run(&w->task);
}

static void route_figures_metrics(struct admin_request *rq)
{
    route_figures_handle(rq, NULL, FIGURE_SUBJECTS);
}

static void route_figures_loops(struct admin_request *rq)
{
    route_figures_handle(rq, "loops", FIGURE_LOOP);
}

static void route_figures_listeners(struct admin_request *rq)
{
    route_figures_handle(rq, "listeners", FIGURE_LISTENER);
}

static void route_figures_limits(struct admin_request *rq)
{
    route_figures_handle(rq, "limits", FIGURE_LIMITS);
}

static void route_figures_upstreams(struct admin_request *rq)
{
    route_figures_handle(rq, "upstreams", FIGURE_UPSTREAM);
}

static const struct admin_route list[] = {
    {"GET", "/metrics", ADMIN_READ, NULL, route_figures_metrics},
    {"GET", "/v1/loops", ADMIN_READ, NULL, route_figures_loops},
    {"GET", "/v1/listeners", ADMIN_READ, NULL, route_figures_listeners},
    {"GET", "/v1/limits", ADMIN_READ, NULL, route_figures_limits},
    {"GET", "/v1/upstreams", ADMIN_READ, NULL, route_figures_upstreams},
};

const struct admin_routes route_figures = {list, ARRAY_LEN(list)};
