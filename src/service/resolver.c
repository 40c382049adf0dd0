/* service/resolver: see resolver.h. */
#include "service/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/executor.h"
#include "engine/promise.h"

/* A server and the name to look up. Its task waits, runs, or is done with: never two of these at a time. */
struct resolver_name {
    struct timed lookup;
    struct promise answered; /* the first time; cancelled: nobody waits for it any more */
    struct resolver *resolver;
    const struct upstream *upstream;
    struct upstream_server *server;
    int error; /* of the last lookup; 0: there was none yet */
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

/* Take out of ${found} what would go round for ever. How many are left, or -ELOOP. */
static int resolver_drop_loops(const struct resolver_name *name, struct address *found, int n)
{
    const struct resolver_conf *conf = &name->resolver->conf;
    const struct upstream_server_conf *server = name->server->conf;
    char text[ADDRESS_TEXT_BYTES];
    int kept = 0;

    for (int i = 0; i < n; i++) {
        if (!conf->leads_back(conf->cookie, name->upstream, &found[i])) {
            found[kept++] = found[i];
            continue;
        }
        if (name->error != -ELOOP) /* else it was said before */
            log_error("upstream %s: server %s (%s): %s is where clients of this upstream come in, "
                      "so that a connection would go round for ever; it is left out",
                      name->upstream->conf->name, server->id, server->address_text,
                      address_format(text, sizeof(text), &found[i]));
    }
    return kept > 0 ? kept : -ELOOP;
}

/* Worth a notice if it was logged before that the name is not known. */
static void resolver_known(struct resolver_name *name, const struct address *found, unsigned n)
{
    const struct upstream_server_conf *server = name->server->conf;
    bool in_time = promise_set_uncancellable(&name->answered) && name->error == 0;
    char text[ADDRESS_TEXT_BYTES], more[32] = "";

    if (n > 1)
        snprintf(more, sizeof(more), " and %u more", n - 1);
    log_write(in_time ? LOG_LEVEL_INFO : LOG_LEVEL_NOTICE,
              "upstream %s: server %s (%s): the name is known: %s%s", name->upstream->conf->name,
              server->id, server->address_text, address_format(text, sizeof(text), &found[0]),
              more);
    promise_succeed(&name->answered, NULL);
}

static void resolver_log_failure(const struct resolver_name *name, int error)
{
    const struct upstream_server_conf *server = name->server->conf;

    log_warning("upstream %s: server %s (%s): cannot look up the name: %s; trying again every %g s",
                name->upstream->conf->name, server->id, server->address_text,
                resolver_error_text(error), (double)name->resolver->conf.retry_ns / NS_PER_S);
}

static void resolver_failed(struct resolver_name *name, int error)
{
    const struct resolver_conf *conf = &name->resolver->conf;
    int rc;

    if (error != name->error)
        resolver_log_failure(name, error);
    name->error = error;
    promise_fail(&name->answered, error);
    rc = executor_schedule(conf->executor, &name->lookup, conf->retry_ns);
    MUST(rc == 0 || rc == -ESHUTDOWN); /* there is a thread: this one */
}

static void resolver_run_lookup(struct task *t)
{
    struct resolver_name *name =
        CONTAINER_OF(CONTAINER_OF(t, struct timed, task), struct resolver_name, lookup);
    struct address found[RESOLVER_ADDRESSES];
    int n = name->resolver->conf.lookup(found, ARRAY_LEN(found), name->server->conf->address_text);
    int rc = n;

    if (n > 0)
        rc = n = resolver_drop_loops(name, found, n);
    if (n > 0)
        rc = upstream_set_addresses(name->server, found, (unsigned)n);
    if (rc < 0)
        resolver_failed(name, rc);
    else
        resolver_known(name, found, (unsigned)n);
}

static void resolver_drop_lookup(struct task *t)
{
    struct resolver_name *name =
        CONTAINER_OF(CONTAINER_OF(t, struct timed, task), struct resolver_name, lookup);

    promise_cancel(&name->answered);
}

static const struct task_type resolver_lookup_type = {
    .name = "look up a host name", .run = resolver_run_lookup, .drop = resolver_drop_lookup};

/* ---- main ---- */

static unsigned resolver_count(const struct resolver_conf *conf)
{
    unsigned n = 0;

    for (unsigned i = 0; i < conf->n_upstreams; i++)
        for (unsigned s = 0; s < conf->upstreams[i]->conf->n_servers; s++)
            n += upstream_addresses(&conf->upstreams[i]->servers[s]) == NULL;
    return n;
}

static void resolver_add(struct resolver *r, const struct upstream *up,
                         struct upstream_server *server)
{
    struct resolver_name *name = &r->names[r->n_names++];

    name->resolver = r;
    name->upstream = up;
    name->server = server;
    timed_init(&name->lookup, &resolver_lookup_type);
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
            if (!upstream_addresses(&up->servers[s]))
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
