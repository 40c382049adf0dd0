#include "upgrade/inherited.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "upgrade/hand_over.h"
#include "net/netns.h"
#include "net/sock.h"

/*
 * Does the file of the unix socket still exist? The service manager may have removed its directory.
 */
static bool inherited_has_file(const struct address *a)
{
    size_t len;
    const char *path = address_path(a, &len);
    struct stat st;

    if (!path)
        return false;
    return path[0] == '\0' || (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode));
}

/*
 * Is this a wildcard IPv6 socket that also accepts IPv4 clients? Sockets of sock_listen() never do.
 */
static bool inherited_is_dual(int fd, const struct address *a)
{
    int only = 0;
    socklen_t len = sizeof(only);

    return IN6_IS_ADDR_UNSPECIFIED(&a->u.in6.sin6_addr) &&
           getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len) == 0 && !only;
}

/* Why ${s} cannot be used; NULL: it can be used. */
static const char *inherited_fault(const struct inherited_socket *s)
{
    switch (s->address.u.sa.sa_family) {
    case AF_INET: return NULL;
    case AF_INET6:
        return inherited_is_dual(s->fd, &s->address)
                   ? "takes IPv4 clients too; set BindIPv6Only=ipv6-only in its .socket unit"
                   : NULL;
    case AF_UNIX: return inherited_has_file(&s->address) ? NULL : "its file is gone";
    default: return "is neither TCP nor a unix socket";
    }
}

static bool inherited_is_same(int a, int b)
{
    struct stat one, other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

void inherited_close(struct inherited_socket *s)
{
    close(s->fd);
    s->fd = -1;
    s->unwanted = true;
}

static void inherited_refuse(struct inherited_socket *s)
{
    inherited_close(s);
    s->address = (struct address){.len = 0};
}

static void inherited_check(struct inherited_socket *sockets, unsigned i)
{
    struct inherited_socket *s = &sockets[i];
    char text[ADDRESS_TEXT_BYTES];
    const char *fault;

    if (hand_over_is_own(s->name)) {
        s->fd = -1; /* upgrade/predecessors takes it */
        return;
    }
    if (sd_is_socket(s->fd, 0, SOCK_STREAM, 1) <= 0 || sock_local(&s->address, s->fd) < 0) {
        log_warning("inherited descriptor %d (%s): is not a listening stream socket; closed", s->fd,
                    s->name);
        inherited_refuse(s);
        return;
    }
    address_set_netns(&s->address, netns_id_of_socket(s->fd));
    sock_remember(&s->file, &s->address);
    fault = inherited_fault(s);
    if (fault) {
        log_warning("inherited socket %s (%s): %s; closed",
                    address_format(text, sizeof(text), &s->address), s->name, fault);
        inherited_refuse(s);
        return;
    }
    for (unsigned j = 0; j < i; j++)
        if (sockets[j].fd >= 0 && inherited_is_same(sockets[j].fd, s->fd)) {
            inherited_refuse(s);
            return;
        }
}

int inherited_read(struct inherited_socket **out, unsigned *n)
{
    char **names = NULL;
    int count = sd_listen_fds_with_names(1, &names);

    *n = 0;
    *out = NULL;
    if (count == -ENOMEM)
        return -ENOMEM;
    if (count < 0)
        log_warning("cannot read LISTEN_FDS and LISTEN_FDNAMES: %s; no socket is inherited",
                    strerror(-count));
    if (count <= 0)
        return 0;
    *out = calloc((size_t)count, sizeof(**out));
    if (!*out) {
        for (int i = 0; i < count; i++)
            free(names[i]);
        free(names);
        return -ENOMEM;
    }
    *n = (unsigned)count;
    for (unsigned i = 0; i < *n; i++) {
        (*out)[i].fd = SD_LISTEN_FDS_START + (int)i;
        (*out)[i].name = names[i];
        inherited_check(*out, i);
    }
    free(names);
    return 0;
}

void inherited_free(struct inherited_socket *sockets, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (sockets[i].fd >= 0)
            close(sockets[i].fd);
        free(sockets[i].name);
    }
    free(sockets);
}
