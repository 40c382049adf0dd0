/*
 * net/sock_connect: connects to servers, see net/sock.h.
 *
 * note: self. If nothing listens on a local address, and the kernel picks its port as source port,
 * the socket is connected to itself. That takes a port which the kernel may pick: other targets are
 * not asked about. The ports are read again after a second, as the administrator may change them;
 * those of another network namespace are not known. Relaxed order: no other memory depends on the
 * ports, and to ask needlessly, or by the ports of a moment ago, does no harm.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/sock.h"

/* See note: all ports in use. */
#define SOCK_PORT_TRIES    256
#define SOCK_PORTS_USED_NS NS_PER_S

/* See note: self. */
#define SOCK_PORT_RANGE    "/proc/sys/net/ipv4/ip_local_port_range"
#define SOCK_PORT_RANGE_NS NS_PER_S

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

/* Open a socket for ${a}, with the options of ${conf}. Returns it, or -errno. */
static int sock_connect_open(const struct address *a, const struct sock_connect_conf *conf)
{
    int fd = sock_options_open(&conf->options, a->u.sa.sa_family), rc;

    if (fd < 0)
        return fd;
    rc = sock_options_set(fd, a->u.sa.sa_family, &conf->options);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

/* Connect ${fd}. On failure it stays open. */
static int sock_connect_begin(int fd, const struct address *a, const struct sock_connect_conf *conf)
{
    if (conf->unseen)
        sock_hold_back_ack(fd, a);
    return sock_connect_to(fd, a);
}

/* Give ${fd} away if ${rc} says that it is connected or connecting, otherwise close it. */
static int sock_connect_end(int *out_fd, int fd, int rc)
{
    if (rc < 0 && rc != -EINPROGRESS)
        close(fd);
    else
        *out_fd = fd;
    return rc;
}

/* As sock_connect(), from ${source}; NULL: the kernel chooses. */
static int sock_connect_from(int *out_fd, const struct address *a,
                             const struct sock_connect_conf *conf, const struct address *source)
{
    int fd = sock_connect_open(a, conf), rc;

    if (fd < 0)
        return fd;
    rc = source ? sock_bind_source(fd, source) : 0;
    if (rc == 0)
        rc = sock_connect_begin(fd, a, conf);
    return sock_connect_end(out_fd, fd, rc);
}

/* See note: all ports in use. */
static unsigned sock_ports_tries(const struct sock_ports *ports)
{
    int64_t at_ns;

    if (!ports || ports->n <= SOCK_PORT_TRIES)
        return ports ? ports->n : 0;
    at_ns = atomic_load_explicit(&ports->all_used_at_ns, memory_order_relaxed);
    return at_ns != 0 && clock_now_ns() - at_ns < SOCK_PORTS_USED_NS ? SOCK_PORT_TRIES : ports->n;
}

/* Let other connects go on at ${turn}, unless they are further. */
static void sock_ports_pass(struct sock_ports *ports, unsigned turn)
{
    unsigned now = atomic_load_explicit(&ports->turn, memory_order_relaxed);

    while ((int)(turn - now) > 0 &&
           !atomic_compare_exchange_weak_explicit(&ports->turn, &now, turn, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* Bind and connect from ${from}. ${fd} has no port; on failure -1: it had one, and is closed. */
static int sock_connect_port(int *fd, const struct address *a, const struct sock_connect_conf *conf,
                             const struct address *from)
{
    int rc = sock_bind_source(*fd, from);

    if (rc == 0) {
        rc = sock_connect_begin(*fd, a, conf);
        if (rc == -EADDRNOTAVAIL || rc == -EADDRINUSE) {
            close(*fd);
            *fd = -1;
        }
    }
    return rc == -EADDRNOTAVAIL ? -EADDRINUSE : rc;
}

/*
 * As sock_connect_from(), from one of the next ${tries} ports of ${conf}. Other threads may begin
 * at the same time: each tries the ports by a count of its own, so that it leaves none out.
 */
static int sock_connect_by_port(int *out_fd, const struct address *a,
                                const struct sock_connect_conf *conf, const struct address *source,
                                unsigned tries)
{
    struct sock_ports *ports = conf->ports;
    struct address from = {.len = a->len};
    unsigned i = 0, step = tries < ports->n ? tries : 1; /* note: all ports in use */
    unsigned turn = atomic_fetch_add_explicit(&ports->turn, step, memory_order_relaxed);
    int rc = -EADDRINUSE, fd = -1;

    from.u.sa.sa_family = a->u.sa.sa_family; /* of any address */
    if (source)
        from = *source;
    while (rc == -EADDRINUSE && i < tries) {
        fd = fd < 0 ? sock_connect_open(a, conf) : fd;
        if (fd < 0)
            return fd;
        address_set_port(&from, (uint16_t)(ports->first + (turn + i++) % ports->n));
        rc = sock_connect_port(&fd, a, conf, &from);
    }
    sock_ports_pass(ports, turn + i);
    if (fd >= 0)
        rc = sock_connect_end(out_fd, fd, rc);
    return rc == -EADDRINUSE ? -EADDRNOTAVAIL : rc;
}

/* As sock_connect_from(), but from one of ${tries} ports if there are ports. */
static int sock_connect_try(int *out_fd, const struct address *a,
                            const struct sock_connect_conf *conf, const struct address *source,
                            unsigned tries)
{
    if (tries == 0 || address_is_unix(a))
        return sock_connect_from(out_fd, a, conf, source);
    return sock_connect_by_port(out_fd, a, conf, source, tries);
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

/* As sock_connect(), trying ${tries} ports for each source. */
static int sock_connect_sources(int *out_fd, const struct address *a,
                                const struct sock_connect_conf *conf, unsigned tries)
{
    const struct address *first = NULL, *source;
    unsigned turn;
    int rc = -EADDRNOTAVAIL;

    if (!conf->sources)
        return sock_connect_try(out_fd, a, conf, NULL, tries);
    turn = atomic_fetch_add_explicit(&conf->sources->turn, 1, memory_order_relaxed);
    do {
        source = sock_source(conf->sources, a->u.sa.sa_family, turn++);
        if (source && source == first)
            break;
        first = first ? first : source;
        rc = sock_connect_try(out_fd, a, conf, source, tries);
    } while (source && (rc == -EADDRNOTAVAIL || rc == -SOCK_NO_SOURCE));
    if (rc == -SOCK_NO_SOURCE && conf->any_source)
        rc = sock_connect_try(out_fd, a, conf, NULL, tries);
    return rc;
}

/* As sock_connect(), from a source or port that is configured. */
static int sock_connect_chosen(int *out_fd, const struct address *a,
                               const struct sock_connect_conf *conf)
{
    unsigned tries = sock_ports_tries(conf->ports);
    int rc = sock_connect_sources(out_fd, a, conf, tries);
    if (rc == -EADDRNOTAVAIL && tries > SOCK_PORT_TRIES)
        atomic_store_explicit(&conf->ports->all_used_at_ns, clock_now_ns(), memory_order_relaxed);
    return rc;
}

int sock_connect(int *out_fd, const struct address *a, const struct sock_connect_conf *conf)
{
    if (conf->sources || conf->ports)
        return sock_connect_chosen(out_fd, a, conf);
    return sock_connect_from(out_fd, a, conf, NULL);
}

int sock_connect_as(int *out_fd, const struct address *a, const struct sock_connect_conf *conf,
                    const struct address *client)
{
    struct address source;

    if (!client || client->u.sa.sa_family != a->u.sa.sa_family || address_is_unix(client))
        return sock_connect(out_fd, a, conf);
    source = *client;
    address_set_port(&source, 0);
    return sock_connect_try(out_fd, a, conf, &source, sock_ports_tries(conf->ports));
}

/* Returns the first port in the upper half, the last in the lower; 0: unknown. */
static uint32_t sock_read_port_range(void)
{
    int fd = open(SOCK_PORT_RANGE, O_RDONLY | O_CLOEXEC);
    unsigned first, last;
    char text[32];
    ssize_t n;

    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%u %u", &first, &last) != 2 || first > UINT16_MAX || last > UINT16_MAX)
        return 0;
    return (uint32_t)first << 16 | last;
}

/* May the kernel pick ${port} as source port? See note: self. The thread that is late reads. */
static bool sock_may_pick(uint16_t port)
{
    static _Atomic int64_t read_at_ns;
    static _Atomic uint32_t range;
    int64_t at_ns = atomic_load_explicit(&read_at_ns, memory_order_relaxed),
            now_ns = clock_now_ns();
    uint32_t r;

    if ((at_ns == 0 || now_ns - at_ns >= SOCK_PORT_RANGE_NS) &&
        atomic_compare_exchange_strong_explicit(&read_at_ns, &at_ns, now_ns, memory_order_relaxed,
                                                memory_order_relaxed))
        atomic_store_explicit(&range, sock_read_port_range(), memory_order_relaxed);
    r = atomic_load_explicit(&range, memory_order_relaxed);
    return r == 0 || (port >= r >> 16 && port <= (r & UINT16_MAX));
}

bool sock_is_self_connected(int fd, const struct address *target,
                            const struct sock_connect_conf *conf)
{
    struct address local;

    if (address_is_unix(target) ||
        !(conf->ports || conf->options.netns || sock_may_pick(address_port(target))))
        return false;
    return sock_local(&local, fd) == 0 && address_equal(&local, target);
}

bool sock_sources_same(const struct sock_sources *a, const struct sock_sources *b)
{
    bool same = a && b ? a->n == b->n : a == b;

    for (unsigned i = 0; same && a && i < a->n; i++)
        same = address_equal(&a->list[i], &b->list[i]);
    return same;
}
