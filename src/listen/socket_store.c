#include "listen/socket_store.h"

#include <unistd.h>

#include "net/sock.h"

bool socket_store_open(const struct socket_store *store, int *out_fd, const struct address *a,
                       const struct sock_listen_conf *conf)
{
    int fd = store && store->take ? store->take(store->cookie, a) : -1;
    int rc;

    if (fd < 0) {
        rc = sock_listen(out_fd, a, conf);
        if (rc < 0)
            *out_fd = rc;
        return false;
    }
    rc = store->shared ? 0 : sock_inherit(fd, a, conf);
    if (rc < 0)
        close(fd);
    *out_fd = rc < 0 ? rc : fd;
    return true;
}

unsigned socket_store_count(const struct socket_store *store, const struct address *a)
{
    return store && store->count ? store->count(store->cookie, a) : 0;
}

bool socket_store_keep(const struct socket_store *store, const struct address *a, int fd)
{
    return store && store->keep && store->keep(store->cookie, a, fd);
}

bool socket_store_forget(const struct socket_store *store, const struct address *a)
{
    return !store || !store->forget || store->forget(store->cookie, a);
}

bool socket_store_is_shared(const struct socket_store *store)
{
    return store && store->shared;
}
