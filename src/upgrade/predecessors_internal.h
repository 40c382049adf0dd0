/* upgrade/predecessors_internal: the processes that this one replaces, for its own files. */
#ifndef UPGRADE_PREDECESSORS_INTERNAL_H
#define UPGRADE_PREDECESSORS_INTERNAL_H

#include "base/list.h"
#include "base/log.h"
#include "upgrade/past.h"
#include "upgrade/predecessors.h"

struct server_state;

struct predecessor {
    struct list link;
    int fd;
    int state_fd; /* its state as received at our start, or for the successor; -1: none */
    struct server_state *state;
    bool has_ended; /* `end` was received */
    bool is_lost;   /* `end` came without its report: there were no descriptors, or no memory */
    bool has_given; /* `sessions` was received */
};

struct predecessors {
    struct list list;
    struct list unused; /* descriptors that are not wanted */
    struct server *server;
    struct predecessor *starter; /* process that started this one; NULL: none, or replaced */
    int epoll_fd;                /* for predecessors_fd() */
    int pid_file_fd;             /* of `starter`, until it is taken; -1: none */
    int state_fd;                /* state of `starter` when this process started */
    int bans_fd;                 /* bans of `starter`; -1: none */
    int sessions_fd;             /* offer of the starter that was replaced; -1: none */
    int log_fd; /* copy of the socket to `starter`; stays open for threads that log */
    bool lent;
    struct past past; /* of `starter` */
    struct log_sink sink;
};

/*
 * predecessors_read(p) / predecessors_drop_unused(p):
 * Find the descriptors of ${p} in LISTEN_FDS, before others are opened / close those that are not
 * wanted, when nothing asks for LISTEN_FDS any more.
 *
 * Errors: 0; -ENOMEM
 */
int predecessors_read(struct predecessors *p) NODISCARD;
void predecessors_drop_unused(struct predecessors *p);

/* predecessors_watch(p): have predecessors_fd() readable when there are messages to read. */
void predecessors_watch(struct predecessors *p);

#endif
