/* net/sock_connect: connects to servers, see net/sock.h. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sock.h"

/* Most ports that are tried for one address. */
#define SOCK_PORT_TRIES 256

/* See note: source and note: ports. */
static int sock_bind_source(int fd, const struct address *source)
{
    bool has_port = address_port(source) > 0;
    const int on = 1;

    if (setsockopt(fd, has_port ? SOL_SOCKET : IPPROTO_IP, /* IPv6 too */
                   has_port ? SO_REUSEADDR : IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) < 0)
        return -errno;
    if (bind(fd, &source->u.sa, source->len) == 0)
        return 0;
    return errno == EADDRNOTAVAIL || errno == ENODEV ? -SOCK_NO_SOURCE : -errno;
}

/* See note: unseen. If this fails, the server sees a reset. */
static void sock_hold_back_ack(int fd, const struct address *a)
{
    int off = 0;

    if (!address_is_unix(a))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
}

/* Connect through the interface that has the name of the zone now; see note: zone. */
static int sock_connect_zone(int fd, const struct address *a)
{
    struct sockaddr_in6 to = a->u.in6;
    struct ifreq interface = {.ifr_ifindex = 0};

    snprintf(interface.ifr_name, sizeof(interface.ifr_name), "%s", a->u.zoned.zone);
    if (ioctl(fd, SIOCGIFINDEX, &interface) < 0)
        return -errno;
    to.sin6_scope_id = (uint32_t)interface.ifr_ifindex;
    return connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -errno : 0;
}

static int sock_connect_to(int fd, const struct address *a)
{
    if (a->u.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a->u.in6.sin6_addr) &&
        a->u.zoned.zone[0] != '\0')
        return sock_connect_zone(fd, a);
    return connect(fd, &a->u.sa, a->len) < 0 ? -errno : 0;
}

/* As sock_connect(), from ${source}; NULL: the kernel chooses. */
static int sock_connect_from(int *out_fd, const struct address *a,
                             const struct sock_connect_conf *conf, const struct address *source)
{
    int fd = sock_options_open(&conf->options, a->u.sa.sa_family), rc;

    if (fd < 0)
        return fd;
    rc = sock_options_set(fd, a->u.sa.sa_family, &conf->options);
    if (rc == 0 && source)
        rc = sock_bind_source(fd, source);
    if (rc == 0 && conf->unseen)
        sock_hold_back_ack(fd, a);
    if (rc == 0)
        rc = sock_connect_to(fd, a);
    if (rc < 0 && rc != -EINPROGRESS) {
        close(fd);
        return rc;
    }
    *out_fd = fd;
    return rc;
}

/* As sock_connect_from(), from a port of ${conf}. */
static int sock_connect_by_port(int *out_fd, const struct address *a,
                                const struct sock_connect_conf *conf, const struct address *source)
{
    struct sock_ports *ports = conf->ports;
    struct address from = {.len = a->len};
    int rc = -EADDRINUSE;

    if (!ports || address_is_unix(a))
        return sock_connect_from(out_fd, a, conf, source);
    from.u.sa.sa_family = a->u.sa.sa_family; /* of any address */
    if (source)
        from = *source;
    for (unsigned i = 0; i < ports->n && i < SOCK_PORT_TRIES; i++) {
        unsigned turn = atomic_fetch_add_explicit(&ports->turn, 1, memory_order_relaxed);

        address_set_port(&from, (uint16_t)(ports->first + turn % ports->n));
        rc = sock_connect_from(out_fd, a, conf, &from);
        if (rc != -EADDRINUSE && rc != -EADDRNOTAVAIL)
            return rc;
    }
    return -EADDRNOTAVAIL;
}

/* Return source ${k} of ${family}, which begin again after the last; NULL: there is none. */
static const struct address *sock_source(const struct sock_sources *sources, sa_family_t family,
                                         unsigned k)
{
    unsigned n = 0;

    for (unsigned i = 0; i < sources->n; i++)
        n += sources->list[i].u.sa.sa_family == family;
    if (n == 0)
        return NULL;
    k %= n;
    for (const struct address *source = sources->list;; source++)
        if (source->u.sa.sa_family == family && k-- == 0)
            return source;
}

int sock_connect_as(int *out_fd, const struct address *a, const struct sock_connect_conf *conf,
                    const struct address *client)
{
    struct address source;

    if (!client || client->u.sa.sa_family != a->u.sa.sa_family || address_is_unix(client))
        return sock_connect(out_fd, a, conf);
    source = *client;
    address_set_port(&source, 0);
    return sock_connect_by_port(out_fd, a, conf, &source);
}

int sock_connect(int *out_fd, const struct address *a, const struct sock_connect_conf *conf)
{
    const struct address *first = NULL, *source;
    unsigned turn;
    int rc = -EADDRNOTAVAIL;

    if (!conf->sources)
        return sock_connect_by_port(out_fd, a, conf, NULL);
    turn = atomic_fetch_add_explicit(&conf->sources->turn, 1, memory_order_relaxed);
    do {
        source = sock_source(conf->sources, a->u.sa.sa_family, turn++);
        if (source && source == first)
            break;
        first = first ? first : source;
        rc = sock_connect_by_port(out_fd, a, conf, source);
    } while (source && (rc == -EADDRNOTAVAIL || rc == -SOCK_NO_SOURCE));
    return rc;
}

bool sock_sources_same(const struct sock_sources *a, const struct sock_sources *b)
{
    bool same = a && b ? a->n == b->n : a == b;

    for (unsigned i = 0; same && a && i < a->n; i++)
        same = address_equal(&a->list[i], &b->list[i]);
    return same;
}
