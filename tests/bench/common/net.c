#include "common/net.h"

#include "common/die.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

int net_raise_nofile(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        die_errno("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        die_errno("setrlimit");
    return (int)limit.rlim_cur;
}

struct sockaddr_in net_parse(const char *address, const char *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    char *end;
    long number = strtol(port, &end, 10);

    if (*port == '\0' || *end != '\0' || number < 1 || number > 65535)
        die("not a port: %s", port);
    if (inet_pton(AF_INET, address, &sa.sin_addr) != 1)
        die("not an IPv4 address: %s", address);
    sa.sin_port = htons((uint16_t)number);
    return sa;
}

struct sockaddr_in net_parse_pair(const char *pair)
{
    char address[INET_ADDRSTRLEN];
    const char *colon = strrchr(pair, ':');

    if (!colon || (size_t)(colon - pair) >= sizeof(address))
        die("not ADDRESS:PORT: %s", pair);
    memcpy(address, pair, (size_t)(colon - pair));
    address[colon - pair] = '\0';
    return net_parse(address, colon + 1);
}

static int net_socket(void)
{
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        die_errno("socket");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
        die_errno("TCP_NODELAY");
    return fd;
}

int net_listen(const struct sockaddr_in *address)
{
    int on = 1;
    int fd = net_socket();

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
        die_errno("SO_REUSEADDR");
    if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        die_errno("bind");
    if (listen(fd, NET_BACKLOG) < 0)
        die_errno("listen");
    return fd;
}

int net_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED)
        die_errno("accept4");
    return fd;
}

int net_connect(const struct sockaddr_in *address)
{
    int fd = net_socket();

    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && errno != EINPROGRESS)
        die_errno("connect");
    return fd;
}

void net_reset(int fd)
{
    struct linger no_linger = {.l_onoff = 1, .l_linger = 0};

    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &no_linger, sizeof(no_linger)) < 0)
        die_errno("SO_LINGER");
    close(fd);
}

void net_watch(int epfd, int op, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (epoll_ctl(epfd, op, fd, &event) < 0)
        die_errno("epoll_ctl");
}
