#include "admin/admin_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin_client.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "engine/loop.h"
#include "listen/socket_store.h"
#include "net/acceptor.h"
#include "net/sock.h"

#define SOCKET_BACKLOG 1024
#define SOCKET_BATCH   16

/* Pause in accepting at the limit of connections, unless a connection ends earlier. */
#define SOCKET_FULL_NS (1 * NS_PER_S)

static int64_t admin_socket_admit(void *cookie)
{
    const struct admin_socket *s = cookie;

    return admin_client_may_accept(s->admin, address_is_unix(&s->address)) ? 0 : SOCKET_FULL_NS;
}

static void admin_socket_accepted(void *cookie, int fd, const struct address *peer)
{
    const struct admin_socket *s = cookie;

    admin_client_accepted(s->admin, fd, peer);
}

static void admin_socket_name(void *cookie, char *text, size_t size)
{
    const struct admin_socket *s = cookie;
    char address[ADDRESS_TEXT_BYTES];

    snprintf(text, size, "admin: %s", address_format(address, sizeof(address), &s->address));
}

static const struct acceptor_ops admin_socket_ops = {
    .admit = admin_socket_admit, .accepted = admin_socket_accepted, .name = admin_socket_name};

static struct sock_listen_conf admin_socket_conf(const struct sock_file *file)
{
    return (struct sock_listen_conf){.backlog = SOCKET_BACKLOG, .file = *file};
}

static int admin_socket_open(struct admin_socket *s, const struct admin_conf *conf)
{
    const struct sock_listen_conf listen_conf = admin_socket_conf(&conf->file);
    int rc;

    s->linked = !socket_store_open(s->admin->store, &s->fd, &s->address, &listen_conf);
    if (s->fd < 0)
        return s->fd;
    sock_remember(&s->own, &s->address);
    rc = acceptor_create(&s->acceptor, SOCKET_BATCH, s->fd, &admin_socket_ops, s);
    if (rc < 0) {
        if (s->linked)
            (void)sock_unlink_own(&s->own, &s->address);
        close(s->fd);
        s->fd = -1;
    }
    return rc;
}

int admin_socket_open_all(struct admin *a, const struct admin_conf *conf)
{
    char text[ADDRESS_TEXT_BYTES];

    a->sockets = calloc(conf->n_addresses, sizeof(*a->sockets));
    if (!a->sockets)
        return -ENOMEM;
    a->file = conf->file;
    for (unsigned i = 0; i < conf->n_addresses; i++) {
        struct admin_socket *s = &a->sockets[i];
        int rc;

        *s = (struct admin_socket){.admin = a, .address = conf->addresses[i]};
        rc = admin_socket_open(s, conf);
        if (rc < 0) {
            log_error("admin: %s: cannot listen: %s",
                      address_format(text, sizeof(text), &s->address), strerror(-rc));
            return rc;
        }
        a->n_sockets++;
        log_info("admin: listens on %s", address_format(text, sizeof(text), &s->address));
    }
    return 0;
}

void admin_socket_keep_all(struct admin *a)
{
    const struct sock_listen_conf conf = admin_socket_conf(&a->file);

    for (unsigned i = 0; i < a->n_sockets; i++) {
        struct admin_socket *s = &a->sockets[i];
        char text[ADDRESS_TEXT_BYTES];
        int rc = 0;

        if (socket_store_is_shared(a->store))
            rc = sock_inherit(s->fd, &s->address, &conf);
        if (rc < 0)
            log_warning("admin: %s: cannot set mode or options of the inherited socket: %s",
                        address_format(text, sizeof(text), &s->address), strerror(-rc));
        s->linked = !socket_store_keep(a->store, &s->address, s->fd);
    }
}

void admin_socket_start_all(struct admin *a)
{
    for (unsigned i = 0; i < a->n_sockets; i++)
        acceptor_start(a->sockets[i].acceptor, a->loop);
}

void admin_socket_resume_all(struct admin *a)
{
    for (unsigned i = 0; i < a->n_sockets; i++)
        acceptor_resume(a->sockets[i].acceptor);
}

void admin_socket_close_all(struct admin *a, bool unlink)
{
    for (unsigned i = 0; i < a->n_sockets; i++) {
        struct admin_socket *s = &a->sockets[i];

        if (s->fd < 0)
            continue;
        if (unlink && s->linked && !sock_unlink_own(&s->own, &s->address))
            log_warning("admin: %s: not removed: the file is of another program now",
                        s->address.u.un.sun_path);
        acceptor_stop(s->acceptor);
        s->fd = -1;
    }
}

void admin_socket_destroy_all(struct admin *a)
{
    for (unsigned i = 0; i < a->n_sockets; i++)
        acceptor_destroy(a->sockets[i].acceptor);
    free(a->sockets);
}
