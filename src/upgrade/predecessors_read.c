/* upgrade/predecessors_read: finds the descriptors of predecessors among those of LISTEN_FDS. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "upgrade/hand_over.h"
#include "upgrade/predecessors_internal.h"

/* Keep ${fd}, which is of no use, open for now: each number of LISTEN_FDS is looked at again. */
static int predecessors_put_aside(struct predecessors *p, int fd)
{
    struct predecessor *q = calloc(1, sizeof(*q));

    if (!q)
        return -ENOMEM;
    q->fd = fd;
    list_append(&p->unused, &q->link);
    return 0;
}

void predecessors_drop_unused(struct predecessors *p)
{
    list_for_each_safe (node, &p->unused) {
        struct predecessor *q = LIST_ENTRY(node, struct predecessor, link);

        list_remove(&q->link);
        close(q->fd);
        free(q);
    }
}

static int predecessors_add(struct predecessors *p, const char *name, int fd)
{
    struct predecessor *q;

    if (sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 0) <= 0) {
        log_warning("inherited descriptor %d (%s): is not the socket of a process; closed", fd,
                    name);
        return predecessors_put_aside(p, fd);
    }
    q = calloc(1, sizeof(*q));
    if (!q)
        return -ENOMEM;
    *q = (struct predecessor){.fd = fd, .state_fd = -1};
    list_append(&p->list, &q->link);
    if (strcmp(name, HAND_OVER_NAME) == 0)
        p->starter = q;
    return 0;
}

/* In LISTEN_FDS the state of a draining process follows its socket. */
static int predecessors_add_state(struct predecessors *p, int fd)
{
    struct predecessor *q =
        list_empty(&p->list) ? NULL : LIST_ENTRY(p->list.prev, struct predecessor, link);

    if (!q || q == p->starter || q->state_fd >= 0)
        return predecessors_put_aside(p, fd);
    q->state_fd = fd;
    return 0;
}

/* Where the only descriptor of ${name} is kept; NULL: it is not one of these, or there is one. */
static int *predecessors_place(struct predecessors *p, const char *name)
{
    int *place = strcmp(name, HAND_OVER_STATE) == 0      ? &p->state_fd
                 : strcmp(name, HAND_OVER_BANS) == 0     ? &p->bans_fd
                 : strcmp(name, HAND_OVER_PID_FILE) == 0 ? &p->pid_file_fd
                                                         : NULL;

    return place && *place < 0 ? place : NULL;
}

/* Take ${fd} if ${name} is one of hand_over.h, except HAND_OVER_LISTEN and HAND_OVER_TICKETS. */
static int predecessors_take(struct predecessors *p, const char *name, int fd)
{
    int *place = predecessors_place(p, name);

    if (!hand_over_is_own(name) || strcmp(name, HAND_OVER_TICKETS) == 0)
        return 0;
    if (strcmp(name, HAND_OVER_OLD) == 0 || (strcmp(name, HAND_OVER_NAME) == 0 && !p->starter))
        return predecessors_add(p, name, fd);
    if (strcmp(name, HAND_OVER_OLD_STATE) == 0)
        return predecessors_add_state(p, fd);
    if (!place)
        return predecessors_put_aside(p, fd);
    *place = fd;
    return 0;
}

/*
 * Later readers would take a descriptor of ours for one of LISTEN_FDS that is not open: unset it
 * before there is any.
 */
static void predecessors_refuse(int rc)
{
    log_warning("cannot read LISTEN_FDS and LISTEN_FDNAMES: %s; no descriptor is inherited",
                strerror(-rc));
    (void)sd_listen_fds(1);
}

int predecessors_read(struct predecessors *p)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(0, &names), rc = n == -ENOMEM ? n : 0;

    if (n < 0 && rc == 0)
        predecessors_refuse(n);
    for (int i = 0; i < n; i++) {
        if (rc == 0)
            rc = predecessors_take(p, names[i], SD_LISTEN_FDS_START + i);
        free(names[i]);
    }
    free(names);
    return rc;
}
