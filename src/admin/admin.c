#include "admin/admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_client.h"
#include "admin/admin_dispatch.h"
#include "admin/admin_history.h"
#include "admin/admin_http.h"
#include "admin/admin_settings.h"
#include "admin/admin_socket.h"
#include "admin/admin_types.h"
#include "admin/route_edits.h"
#include "admin/route_process.h"
#include "base/clock.h"
#include "engine/loop.h"
#include "server/server.h"
#include "stats/events.h"

/* Time for requests under way to end when the process stops. */
#define FINISH_NS (500 * NS_PER_MS)

/* Time for the loop to end, and further time to join its thread. */
#define STOP_NS (2 * NS_PER_S)
#define JOIN_NS (1 * NS_PER_S)

#define IO_RATIO    50
#define QUANTUM_NS  (10 * NS_PER_MS)
#define MAX_PENDING 100000
#define STALL_NS    (500 * NS_PER_MS)

static const struct loop_conf loop_conf = {
    .name = "admn-5-1",
    .budget = {.io_ratio = IO_RATIO, .quantum_ns = QUANTUM_NS},
    .max_pending_tasks = MAX_PENDING,
    .stall_threshold_ns = STALL_NS,
    .yields = true,
};

/* ---- admin loop ---- */

/* Its only use is that the loop has a thread then. */
static void admin_run_thread(struct task *t)
{
    (void)t;
}

static void admin_run_start(struct task *t)
{
    struct admin *a = CONTAINER_OF(t, struct admin, start);

    admin_http_start(a->http);
    admin_socket_start_all(a);
    admin_history_start(a->history);
}

static void admin_run_leave(struct task *t)
{
    struct admin *a = CONTAINER_OF(t, struct admin, leave);

    a->closing = true;
    admin_socket_close_all(a, true);
    admin_client_close_idle(a);
    admin_client_look_finished(a);
}

static void admin_run_at_stop(struct task *t)
{
    struct admin *a = CONTAINER_OF(t, struct admin, at_stop);

    a->closing = true;
    admin_socket_close_all(a, true);
    admin_http_stop(a->http);
}

/* No drop(): admin_destroy() closes sockets and connections. */
static const struct task_type admin_thread_type = {.name = "admin thread", .run = admin_run_thread};
static const struct task_type admin_start_type = {.name = "admin start", .run = admin_run_start};
static const struct task_type admin_leave_type = {.name = "admin leave", .run = admin_run_leave};
static const struct task_type admin_at_stop_type = {.name = "admin stop", .run = admin_run_at_stop};

static void admin_run_action(struct task *t)
{
    struct admin_action *action = CONTAINER_OF(t, struct admin_action, task);

    if (action->kind == ADMIN_EDIT_SERVER || action->kind == ADMIN_UNDO_EDITS)
        route_edits_finish(action);
    else
        route_process_finish(action);
}

static const struct task_type admin_action_type = {
    .name = "admin action", .run = admin_run_action, .drop = admin_run_action};

/* ---- main ---- */

static int admin_create_loop(struct admin *a)
{
    int rc = loop_create(&a->loop, &loop_conf);

    if (rc < 0)
        return rc;
    a->thread.type = &admin_thread_type;
    a->start.type = &admin_start_type;
    a->leave.type = &admin_leave_type;
    a->at_stop.type = &admin_at_stop_type;
    loop_at_stop(a->loop, &a->at_stop);
    return admin_http_create(&a->http, a, &admin_dispatch_ops);
}

/* What the interface remembers: events from now on, and samples. */
static int admin_create_memory(struct admin *a)
{
    int rc = events_create(&a->events);

    if (rc < 0)
        return rc;
    log_set_events(events_sink(a->events));
    return admin_history_create(&a->history, a);
}

int admin_create(struct admin **out, const struct admin_conf *conf, const struct admin_env *env)
{
    struct admin *a;
    int rc;

    *out = NULL;
    if (conf->n_addresses == 0)
        return 0;
    a = calloc(1, sizeof(*a));
    if (!a)
        return -ENOMEM;
    a->server = env->server;
    a->store = env->sockets;
    a->ops = env->ops;
    a->started_at = time(NULL);
    a->started_at_ns = clock_now_ns();
    lock_init(&a->lock);
    promise_init(&a->finished, NULL);
    list_init(&a->clients);
    admin_settings_set(a, conf);
    rc = admin_create_loop(a);
    if (rc == 0)
        rc = admin_create_memory(a);
    if (rc == 0)
        rc = admin_socket_open_all(a, conf);
    if (rc < 0) {
        admin_destroy(a);
        return rc;
    }
    server_add_loop(a->server, a->loop);
    *out = a;
    return 0;
}

int admin_start_thread(struct admin *a)
{
    int rc = a ? loop_submit(a->loop, LOOP_CONTROL, &a->thread) : 0;

    if (rc < 0)
        log_error("admin: cannot start its thread: %s (ulimit -u; TasksMax= of the unit; pids.max "
                  "of the control group)",
                  strerror(-rc));
    return rc;
}

int admin_start(struct admin *a)
{
    if (!a)
        return 0;
    admin_socket_keep_all(a);
    a->started = true;
    return loop_submit(a->loop, LOOP_CONTROL, &a->start);
}

void admin_configure(struct admin *a, const struct admin_conf *conf)
{
    if (!a)
        return;
    admin_settings_set(a, conf);
    if (a->started && conf->history_ns > 0)
        admin_history_wake(a->history);
}

void admin_set_state(struct admin *a, enum admin_state state)
{
    if (a)
        atomic_store_explicit(&a->state, (int)state, memory_order_relaxed);
}

/* Accept no more connections; let requests under way end. */
static void admin_close(struct admin *a)
{
    if (!a->started || a->left)
        return;
    a->left = true;
    if (loop_submit(a->loop, LOOP_CONTROL, &a->leave) < 0)
        task_drop(&a->leave);
}

void admin_leave(struct admin *a)
{
    if (!a)
        return;
    for (unsigned i = 0; i < a->n_sockets; i++)
        a->sockets[i].linked = false;
    admin_close(a);
}

int admin_descriptor(const struct admin *a, unsigned i, const struct address **address)
{
    if (!a || i >= a->n_sockets)
        return -1;
    *address = &a->sockets[i].address;
    return a->sockets[i].fd;
}

void admin_action_done(struct admin *a, struct admin_action *action)
{
    action->task.type = &admin_action_type;
    MUST(loop_submit(a->loop, LOOP_CONTROL, &action->task) ==
         0); /* admin_stop() is called after the last action */
}

int admin_stop(struct admin *a)
{
    if (!a)
        return 0;
    admin_close(a);
    if (a->started && promise_await(&a->finished, FINISH_NS) < 0)
        log_info("admin: stopping: connections that are still open are closed");
    loop_stop(a->loop, 0, STOP_NS);
    return loop_join_until(a->loop, clock_now_ns() + STOP_NS + JOIN_NS);
}

void admin_destroy(struct admin *a)
{
    if (!a)
        return;
    if (a->loop)
        loop_stop(a->loop, 0, 0); /* ends a loop that never had a thread */
    MUST(admin_client_pending(a) == 0);
    admin_http_destroy(a->http);
    admin_socket_close_all(a, true);
    admin_socket_destroy_all(a);
    if (a->loop)
        loop_destroy(a->loop);
    promise_close(&a->finished);
    lock_close(&a->lock);
    log_set_events(NULL);
    admin_history_destroy(a->history);
    events_destroy(a->events);
    free(a);
}
