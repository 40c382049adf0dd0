/*
 * upstream/server_line: a line `server.ID = ADDRESS ...` of an upstream's configuration.
 *
 * Reference-counted. An unchanged line is the same object in the next configuration; a changed line
 * is a new object with the same ID. Immutable, except for the administrator's changes, which last
 * as long as the object.
 */
#ifndef UPSTREAM_SERVER_LINE_H
#define UPSTREAM_SERVER_LINE_H

#include <stdatomic.h>

#include "balance/upstream_server.h"
#include "base/must.h"

enum server_line_state {
    SERVER_LINE_AS_CONFIGURED,
    SERVER_LINE_READY,   /* in use, even if the line is `disabled` */
    SERVER_LINE_DRAIN,   /* no new sessions */
    SERVER_LINE_DISABLED /* no new sessions, no health checks */
};

struct server_line_admin {
    enum server_line_state state;
    bool has_weight;
    unsigned weight;
};

struct server_line_own;

struct server_line {
    atomic_uint references;
    struct server_line_admin admin;   /* owned by the control loop; see upstream/membership_admin */
    struct server_line_own *own;      /* as `admin`, of single servers; NULL: none */
    struct upstream_server_conf conf; /* a copy, with all that its pointers refer to */
};

/*
 * server_line_create(out, conf):
 * Copy ${conf}; the caller has the first reference.
 *
 * Errors: 0; -ENOMEM
 */
int server_line_create(struct server_line **out, const struct upstream_server_conf *conf) NODISCARD;

/* server_line_is(line, conf): does ${line} equal ${conf}? */
bool server_line_is(const struct server_line *line, const struct upstream_server_conf *conf);

/*
 * server_line_is_disabled(line) / server_line_weight(line, found) / server_line_is_changed(line):
 * Is ${line} disabled? / return the weight of a server with weight ${found} in the configuration or
 * SRV record / has an administrator changed ${line}, or a server of it? The administrator's changes
 * take precedence.
 *
 * Thread: control loop, or main before start
 */
bool server_line_is_disabled(const struct server_line *line);
unsigned server_line_weight(const struct server_line *line, unsigned found);
bool server_line_is_changed(const struct server_line *line);

/*
 * server_line_admin_is_disabled(admin, conf) / server_line_admin_weight(admin, conf, found):
 * Return these for a line ${conf}, or a server of it, with the settings ${admin}.
 */
bool server_line_admin_is_disabled(const struct server_line_admin *admin,
                                   const struct upstream_server_conf *conf);
unsigned server_line_admin_weight(const struct server_line_admin *admin,
                                  const struct upstream_server_conf *conf, unsigned found);

/*
 * server_line_text(line):
 * Write ${line} as text. Equal lines have equal texts, in all processes.
 *
 * Owns:   the caller frees the text
 * Errors: NULL (out of memory)
 */
char *server_line_text(const struct server_line *line) NODISCARD;

/*
 * server_line_hold(line) / server_line_release(line):
 * Add a reference and return ${line} / release a reference (or NULL); the last one frees ${line}.
 */
struct server_line *server_line_hold(struct server_line *line);
void server_line_release(struct server_line *line);

#endif
