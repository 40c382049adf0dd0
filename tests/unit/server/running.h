/*
 * server/running: a server that runs, the ports of its listeners and upstream servers, its clients,
 * and changes that are waited for.
 */
#ifndef UNIT_SERVER_RUNNING_H
#define UNIT_SERVER_RUNNING_H

#include <check.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "server/server.h"
#include "server/server_conf.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define RUNNING_ADDRESSES 3
#define RUNNING_BACKS     2
#define RUNNING_CLIENTS   64

static struct running {
    struct server *server;
    struct address addresses[RUNNING_ADDRESSES]; /* free for listeners */
    struct address backs[RUNNING_BACKS];         /* of upstream servers */
    int listening[RUNNING_BACKS];
    int clients[RUNNING_CLIENTS]; /* of address 0, each echoed */
    unsigned n_clients;
} running;

static int running_holders[RUNNING_ADDRESSES]; /* of the addresses' ports */
static int running_done_fd, running_done_rc;
static unsigned running_before; /* descriptors */

/* Checked fixture: ports, no server yet. Lines of the log are captured from LOG_LEVEL_NOTICE on. */
static inline void running_enter(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    running_before = process_descriptors();
    running_done_fd = eventfd(0, EFD_CLOEXEC);
    for (unsigned i = 0; i < RUNNING_BACKS; i++)
        running.listening[i] = sockets_listen(&running.backs[i], 64);
    for (unsigned i = 0; i < RUNNING_ADDRESSES; i++)
        running_holders[i] = sockets_bound(&running.addresses[i]);
}

/* Checked fixture: stop the server, and see that no thread and no descriptor is left. */
static inline void running_leave(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(running.server, &cut), 0);
    server_destroy(running.server);
    close(running_done_fd);
    for (unsigned i = 0; i < RUNNING_BACKS; i++)
        close(running.listening[i]);
    for (unsigned i = 0; i < RUNNING_ADDRESSES; i++)
        close(running_holders[i]);
    UNTIL(process_loops() == 0);
    ck_assert_uint_eq(process_descriptors(), running_before);
}

/* Of a proxy or, without ${upstream}, of an echo. */
static inline struct listener_conf running_listener(const char *name, unsigned address,
                                                    const char *upstream)
{
    return (struct listener_conf){.name = name,
                                  .addresses = &running.addresses[address],
                                  .n_addresses = 1,
                                  .service = upstream ? LISTENER_PROXY : LISTENER_ECHO,
                                  .upstream = upstream,
                                  .backlog = 128,
                                  .reuseport = 1};
}

static inline struct upstream_server_conf running_upstream_server(const char *id, unsigned back)
{
    return (struct upstream_server_conf){.id = id,
                                         .address_text = "there",
                                         .addresses = &running.backs[back],
                                         .n_addresses = 1,
                                         .weight = 1};
}

static inline void running_create(const struct server_conf *conf)
{
    struct server_events events = {.drained = NULL};

    ck_assert_int_eq(server_create(&running.server, conf, &events), 0);
}

static inline void running_start(const struct server_conf *conf)
{
    running_create(conf);
    ck_assert_int_eq(server_start(running.server), 0);
}

static inline void running_done(void *cookie, int rc)
{
    (void)cookie;
    running_done_rc = rc;
    (void)eventfd_write(running_done_fd, 1);
}

/* The result of a change that began with ${rc}. No ck_assert(): it allocates memory. */
static inline int running_await(int rc)
{
    eventfd_t n;

    if (rc < 0)
        return rc;
    return eventfd_read(running_done_fd, &n) == 0 ? running_done_rc : -errno;
}

static inline int running_begin_reload(const struct server_conf *conf)
{
    const struct server_reload to = {.conf = conf, .done = running_done};

    return server_reload(running.server, &to);
}

static inline int running_reload(const struct server_conf *conf)
{
    return running_await(running_begin_reload(conf));
}

static inline int running_resize(const struct server_conf *conf, unsigned workers)
{
    const struct server_reload to = {.conf = conf, .workers = workers, .done = running_done};

    return running_await(server_resize(running.server, &to));
}

static inline void running_exchange(int fd)
{
    sockets_say(fd, "hello");
    sockets_hear(fd, "hello");
}

/* ${n} more clients, each echoed. */
static inline void running_come(unsigned n)
{
    while (n-- > 0) {
        ck_assert_uint_lt(running.n_clients, RUNNING_CLIENTS);
        running.clients[running.n_clients] = sockets_connect(&running.addresses[0]);
        running_exchange(running.clients[running.n_clients++]);
    }
}

static inline void running_exchange_all(void)
{
    for (unsigned i = 0; i < running.n_clients; i++)
        running_exchange(running.clients[i]);
}

/* All clients close, and their sessions end. */
static inline void running_go(void)
{
    while (running.n_clients > 0)
        close(running.clients[--running.n_clients]);
    UNTIL(server_sessions(running.server) == 0);
}

#endif
