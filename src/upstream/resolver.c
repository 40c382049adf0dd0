/* upstream/resolver: see resolver.h. */
#include "upstream/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/executor.h"
#include "engine/loop.h"
#include "engine/promise.h"

/* A server and the name to look up. One of its two tasks waits, runs, or both are done with: what follows has one owner. */
struct resolver_name {
    struct timed lookup;
    struct task answer;
    struct promise answered; /* the first time; cancelled: nobody waits for it any more */
    struct resolver *resolver;
    struct upstream *upstream;
    struct upstream_server *server;
    bool known;
    bool loops; /* some address of the last answer leads back, which was told */
    int error;  /* of the last lookup; 0: it went well, or there was none yet */
    int n;      /* of the one that is to be answered: how many were found, or -errno */
    struct address found[RESOLVER_ADDRESSES];
};

struct resolver {
    struct resolver_conf conf;
    unsigned n_names;
    struct resolver_name names[];
};

/* ---- on the executor ---- */

static const char *resolver_error_text(int error)
{
    switch (error) {
    case -ENOENT: return "there is no such name";
    case -EAGAIN: return "no name server answers";
    case -EREMOTEIO: return "the name server fails";
    case -ELOOP: return "none of its addresses can be used";
    default: return strerror(-error);
    }
}

/* Take out of what was found what would go round for ever. How many are left, or -ELOOP. */
static int resolver_drop_loops(struct resolver_name *name)
{
    const struct resolver_conf *conf = &name->resolver->conf;
    const struct upstream_server_conf *server = name->server->conf;
    char text[ADDRESS_TEXT_BYTES];
    bool told = name->loops;
    int kept = 0;

    name->loops = false;
    for (int i = 0; i < name->n; i++) {
        if (!conf->leads_back(conf->cookie, name->upstream, &name->found[i])) {
            name->found[kept++] = name->found[i];
            continue;
        }
        name->loops = true;
        if (!told)
            log_error("upstream %s: server %s (%s): %s is where clients of this upstream come in, "
                      "so that a connection would go round for ever; it is left out",
                      name->upstream->conf->name, server->id, server->address_text,
                      address_format(text, sizeof(text), &name->found[i]));
    }
    return kept > 0 ? kept : -ELOOP;
}

/* False: the executor has ended, and with it the looking up. */
static bool resolver_look_up_in(struct resolver_name *name, int64_t delay_ns)
{
    return executor_schedule(name->resolver->conf.executor, &name->lookup, delay_ns) == 0;
}

static void resolver_run_lookup(struct task *t)
{
    struct resolver_name *name =
        CONTAINER_OF(CONTAINER_OF(t, struct timed, task), struct resolver_name, lookup);
    const struct resolver_conf *conf = &name->resolver->conf;

    name->n = conf->lookup(name->found, ARRAY_LEN(name->found), name->server->conf->address_text);
    if (name->n > 0)
        name->n = resolver_drop_loops(name);
    if (loop_submit(conf->control, LOOP_CONTROL, &name->answer) < 0 &&
        !resolver_look_up_in(name, conf->retry_ns))
        promise_cancel(&name->answered);
}

static void resolver_drop_lookup(struct task *t)
{
    struct resolver_name *name =
        CONTAINER_OF(CONTAINER_OF(t, struct timed, task), struct resolver_name, lookup);

    promise_cancel(&name->answered);
}

static const struct task_type resolver_lookup_type = {
    .name = "look up a host name", .run = resolver_run_lookup, .drop = resolver_drop_lookup};

/* ---- on the control loop ---- */

/* Worth a notice if something was logged before that is no longer so. */
static void resolver_log_known(struct resolver_name *name, bool moved)
{
    const struct upstream_server_conf *server = name->server->conf;
    bool in_time = promise_set_uncancellable(&name->answered) && name->error == 0;
    const char *how = !name->known ? "known" : moved ? "somewhere else now" : "known again";
    char text[ADDRESS_TEXT_BYTES], more[32] = "";

    if (name->n > 1)
        snprintf(more, sizeof(more), " and %d more", name->n - 1);
    log_write(in_time && !name->known ? LOG_LEVEL_INFO : LOG_LEVEL_NOTICE,
              "upstream %s: server %s (%s): the name is %s: %s%s", name->upstream->conf->name,
              server->id, server->address_text, how,
              address_format(text, sizeof(text), &name->found[0]), more);
}

static void resolver_log_failure(const struct resolver_name *name, int error)
{
    const struct upstream_server_conf *server = name->server->conf;

    log_warning(
        "upstream %s: server %s (%s): cannot look up the name: %s; %strying again every %g s",
        name->upstream->conf->name, server->id, server->address_text, resolver_error_text(error),
        name->known ? "what was known stays; " : "",
        (double)name->resolver->conf.retry_ns / NS_PER_S);
}

/* When it is to be looked up again; 0: never. */
static int64_t resolver_answer(struct resolver_name *name)
{
    int rc = name->n;

    if (rc > 0)
        rc = upstream_set_addresses(name->upstream, name->server, name->found, (unsigned)name->n);
    if (rc < 0) {
        if (rc != name->error)
            resolver_log_failure(name, rc);
        name->error = rc;
        promise_fail(&name->answered, rc);
        return name->resolver->conf.retry_ns;
    }
    if (rc > 0 || name->error < 0)
        resolver_log_known(name, rc > 0);
    name->known = true;
    name->error = 0;
    promise_succeed(&name->answered, NULL);
    return name->upstream->conf->resolve_interval_ns;
}

static void resolver_run_answer(struct task *t)
{
    struct resolver_name *name = CONTAINER_OF(t, struct resolver_name, answer);
    int64_t delay_ns = resolver_answer(name);

    if (delay_ns > 0 && !resolver_look_up_in(name, delay_ns))
        promise_cancel(&name->answered);
}

static void resolver_drop_answer(struct task *t)
{
    promise_cancel(&CONTAINER_OF(t, struct resolver_name, answer)->answered);
}

static const struct task_type resolver_answer_type = {.name = "use the addresses of a name",
                                                      .run = resolver_run_answer,
                                                      .drop = resolver_drop_answer};

/* ---- main ---- */

static unsigned resolver_count(const struct resolver_conf *conf)
{
    unsigned n = 0;

    for (unsigned i = 0; i < conf->n_upstreams; i++)
        for (unsigned s = 0; s < conf->upstreams[i]->conf->n_servers; s++)
            n += conf->upstreams[i]->conf->servers[s].n_addresses == 0;
    return n;
}

static void resolver_add(struct resolver *r, struct upstream *up, struct upstream_server *server)
{
    struct resolver_name *name = &r->names[r->n_names++];

    name->resolver = r;
    name->upstream = up;
    name->server = server;
    timed_init(&name->lookup, &resolver_lookup_type);
    name->answer.type = &resolver_answer_type;
    promise_init(&name->answered, NULL);
}

int resolver_create(struct resolver **out, const struct resolver_conf *conf)
{
    struct resolver *r = calloc(1, sizeof(*r) + resolver_count(conf) * sizeof(r->names[0]));

    if (!r)
        return -ENOMEM;
    r->conf = *conf;
    for (unsigned i = 0; i < conf->n_upstreams; i++) {
        struct upstream *up = conf->upstreams[i];

        for (unsigned s = 0; s < up->conf->n_servers; s++)
            if (up->conf->servers[s].n_addresses == 0)
                resolver_add(r, up, &up->servers[s]);
    }
    *out = r;
    return 0;
}

unsigned resolver_names(const struct resolver *r)
{
    return r->n_names;
}

static void resolver_wait(struct resolver_name *name, int64_t until_ns)
{
    const struct upstream_server_conf *server = name->server->conf;

    if (promise_await(&name->answered, until_ns - clock_now_ns()) == 0)
        return;
    if (promise_cancel(&name->answered))
        log_warning("upstream %s: server %s (%s): the name is still being looked up; clients that "
                    "come before it is known get other servers",
                    name->upstream->conf->name, server->id, server->address_text);
}

int resolver_start(struct resolver *r, int64_t wait_ns)
{
    int64_t until_ns = clock_add_ns(clock_now_ns(), wait_ns);

    for (unsigned i = 0; i < r->n_names; i++) {
        int rc = executor_schedule(r->conf.executor, &r->names[i].lookup, 0);

        if (rc < 0)
            return rc;
    }
    for (unsigned i = 0; i < r->n_names; i++)
        resolver_wait(&r->names[i], until_ns);
    return 0;
}

void resolver_destroy(struct resolver *r)
{
    if (!r)
        return;
    for (unsigned i = 0; i < r->n_names; i++)
        promise_close(&r->names[i].answered);
    free(r);
}
