/*
 * daemon/admin_desk: creates the admin interface and carries out its requests to the main thread.
 *
 *   admin loop --submit()--> mailbox, eventfd --> main: reload, upgrade
 *              <--admin_action_done()------------/
 */
#ifndef DAEMON_ADMIN_DESK_H
#define DAEMON_ADMIN_DESK_H

#include <stdbool.h>

#include "admin/admin.h"
#include "base/must.h"

struct access_logs;
struct admin_desk;
struct reload;
struct upgrade;

/* What requests need; created after the admin interface. */
struct admin_desk_conf {
    const char *config_path;
    struct access_logs *access_logs;
    struct reload *reload;
    struct upgrade *upgrade;
};

/*
 * admin_desk_create(out, conf, server, sockets):
 * Create the desk and, if ${conf} has addresses, the admin interface. Failures are logged.
 *
 * Thread: main, before any other thread
 * Owns:   ${server} and ${sockets} must outlive the desk
 * Errors: 0; as admin_create(); -ENOMEM; -EMFILE, -ENFILE
 */
int admin_desk_create(struct admin_desk **out, const struct admin_conf *conf, struct server *server,
                      const struct socket_store *sockets) NODISCARD;

/* admin_desk_admin(desk): the admin interface; NULL: none is configured. */
struct admin *admin_desk_admin(const struct admin_desk *desk);

/* admin_desk_configure(desk, conf): use the settings of ${conf}, now in use. */
void admin_desk_configure(const struct admin_desk *desk, const struct admin_conf *conf);

/*
 * admin_desk_open(desk, conf):
 * Set what requests need, and publish the first status.
 *
 * Thread: main, before admin_start()
 * Owns:   ${conf} is copied; what it points at must live until admin_stop()
 */
void admin_desk_open(struct admin_desk *desk, const struct admin_desk_conf *conf);

/*
 * admin_desk_fd(desk) / admin_desk_step(desk, obstacle):
 * Descriptor that is readable when there are requests / carry requests out, answer finished ones,
 * and publish the status. Call it also after each step of a reload or upgrade. ${obstacle}: why
 * changes are refused now; NULL: they are allowed.
 */
int admin_desk_fd(const struct admin_desk *desk);
void admin_desk_step(struct admin_desk *desk, const char *obstacle);

/*
 * admin_desk_close(desk):
 * Refuse pending and later requests, because the process ends.
 *
 * Thread: main, before admin_stop()
 */
void admin_desk_close(struct admin_desk *desk);

/*
 * admin_desk_destroy(desk):
 * Free ${desk}, or NULL, and the interface.
 *
 * Thread: main, after admin_stop()
 */
void admin_desk_destroy(struct admin_desk *desk);

#endif
