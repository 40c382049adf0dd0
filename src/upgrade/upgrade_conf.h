/* upgrade/upgrade_conf: the parts of the process that an upgrade works with. */
#ifndef UPGRADE_UPGRADE_CONF_H
#define UPGRADE_UPGRADE_CONF_H

struct admin;
struct fd_store;
struct pid_file;
struct predecessors;
struct reload;
struct program;
struct server;

struct upgrade_conf {
    const struct program *program;
    struct server *server;
    struct predecessors *predecessors;
    struct fd_store *sockets;
    struct pid_file *pid_file; /* NULL: none */
    struct admin *admin;       /* NULL: none */
    struct reload *reload;     /* knows the servers that an administrator added and removed */
    const char *obstacle;      /* why this process can never be replaced; NULL: it can be */
};

#endif
