#include "net/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/ref.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif

#define NETNS_OWN "/proc/thread-self/ns/net"

struct netns {
    struct ref references;
    int fd;
    int home; /* the namespace of the process */
    uint32_t id;
};

static int netns_open_file(int *out, const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct statfs fs;

    if (fd < 0)
        return -errno;
    if (fstatfs(fd, &fs) < 0 || fs.f_type != NSFS_MAGIC ||
        ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
        close(fd);
        return -EINVAL;
    }
    *out = fd;
    return 0;
}

static int netns_open_name(int *out, const char *name)
{
    size_t size = sizeof(NETNS_DIRECTORY "/") + strlen(name);
    char *path;
    int rc;

    if (name[0] == '/')
        return netns_open_file(out, name);
    path = malloc(size);
    if (!path)
        return -ENOMEM;
    snprintf(path, size, NETNS_DIRECTORY "/%s", name);
    rc = netns_open_file(out, path);
    free(path);
    return rc;
}

static bool netns_read_cookie(uint32_t *id, int sock)
{
    uint64_t cookie;
    socklen_t len = sizeof(cookie);

    if (getsockopt(sock, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) < 0)
        return false;
    *id = (uint32_t)cookie;
    return true;
}

/* Id of the namespace of which ${ns} is a file: the inode is another one in each. */
static uint32_t netns_inode(int ns)
{
    struct stat st;

    return fstat(ns, &st) < 0 ? 0 : (uint32_t)st.st_ino;
}

/* Id of the namespace that this thread is in, of which ${ns} is a file. */
static uint32_t netns_id_here(int ns)
{
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint32_t id;

    if (sock < 0 || !netns_read_cookie(&id, sock))
        id = netns_inode(ns);
    if (sock >= 0)
        close(sock);
    return id;
}

static int netns_identify(struct netns *ns)
{
    int rc = netns_enter(ns);

    if (rc < 0)
        return rc;
    ns->id = netns_id_here(ns->fd);
    netns_leave(ns);
    return 0;
}

int netns_open(struct netns **out, const char *name)
{
    struct netns *ns = malloc(sizeof(*ns));
    int rc;

    if (!ns)
        return -ENOMEM;
    *ns = (struct netns){.fd = -1, .home = -1};
    ref_init(&ns->references);
    rc = netns_open_name(&ns->fd, name);
    if (rc == 0 && netns_open_file(&ns->home, NETNS_OWN) < 0)
        rc = -ENOSYS;
    if (rc == 0)
        rc = netns_identify(ns);
    if (rc < 0 || ns->id == netns_id_here(ns->home)) {
        netns_release(ns);
        ns = NULL;
    }
    if (rc == 0)
        *out = ns;
    return rc;
}

struct netns *netns_hold(struct netns *ns)
{
    if (ns)
        ref_hold(&ns->references);
    return ns;
}

void netns_release(struct netns *ns)
{
    if (!ns || !ref_release(&ns->references))
        return;
    if (ns->fd >= 0)
        close(ns->fd);
    if (ns->home >= 0)
        close(ns->home);
    free(ns);
}

int netns_enter(const struct netns *ns)
{
    return ns && setns(ns->fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

void netns_leave(const struct netns *ns)
{
    if (!ns || setns(ns->home, CLONE_NEWNET) == 0)
        return;
    log_error("this thread cannot return from a network namespace: %s", strerror(errno));
    MUST(!"back in the network namespace of the process");
}

uint32_t netns_id(const struct netns *ns)
{
    return ns ? ns->id : 0;
}

/* Without the cookie, before Linux 5.14: by the inode. */
static uint32_t netns_id_by_file(int sock, int own)
{
    int ns = ioctl(sock, SIOCGSKNS);
    uint32_t id;

    if (ns < 0)
        return 0;
    id = netns_inode(ns);
    close(ns);
    return id == netns_inode(own) ? 0 : id;
}

uint32_t netns_id_of_socket(int fd)
{
    uint32_t id = 0;
    int own = -1;

    if (netns_open_file(&own, NETNS_OWN) < 0)
        return 0;
    if (!netns_read_cookie(&id, fd))
        id = netns_id_by_file(fd, own);
    else if (id == netns_id_here(own))
        id = 0;
    close(own);
    return id;
}
