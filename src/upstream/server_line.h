/*
 * upstream/server_line: a line `server.ID = ADDRESS ...` of an upstream's configuration.
 *
 * Reference-counted. An unchanged line is the same object in the next configuration; a changed line
 * is a new object with the same ID. Immutable, except for the administrator's changes, which last
 * as long as the object.
 */
#ifndef UPSTREAM_SERVER_LINE_H
#define UPSTREAM_SERVER_LINE_H

#include "balance/upstream_server.h"
#include "base/ref.h"
#include "base/must.h"

enum server_line_state {
    SERVER_LINE_AS_CONFIGURED,
    SERVER_LINE_READY,   /* in use, even if the line is `disabled` */
    SERVER_LINE_DRAIN,   /* no new sessions */
    SERVER_LINE_DISABLED /* no new sessions, no health checks */
};

struct server_line_admin {
    enum server_line_state state;
    bool has_weight, has_max;
    unsigned weight;
    unsigned max_connections; /* told by an agent; 0: no limit */
};

/*
 * Settings for single servers of a line, a name. They take precedence over those of the line, and
 * are kept with it, also while the name does not have the address. Replaced as a whole.
 */
struct server_line_own_entry {
    char *name; /* of the server: ID@ADDRESS */
    struct server_line_admin admin;
};

struct server_line_own {
    unsigned n;
    struct server_line_own_entry list[];
};

/* What a change of the whole line undoes for its single servers, as bits. */
#define SERVER_LINE_OWN_STATES  1u
#define SERVER_LINE_OWN_WEIGHTS 2u

struct server_line {
    struct ref references;
    struct server_line_admin admin; /* owned by the control loop; see upstream/membership_admin */
    struct server_line_own *own;    /* as `admin`, of single servers; NULL: none */
    bool is_by_hand; /* as `admin`: as conf.by_hand, but of the last configuration with this line */
    struct upstream_server_conf conf; /* a copy, with all that its pointers refer to */
};

/*
 * server_line_create(out, conf):
 * Copy ${conf}; the caller has the first reference.
 *
 * Errors: 0; -ENOMEM
 */
int server_line_create(struct server_line **out, const struct upstream_server_conf *conf) NODISCARD;

/* server_line_is(line, conf): does ${line} equal ${conf}, by hand or not? */
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
 * server_line_admin_is_disabled(admin, conf) / server_line_admin_weight(admin, conf, found) /
 * server_line_admin_max(admin, conf):
 * Return these for a line ${conf}, or a server of it, with the settings ${admin}.
 */
bool server_line_admin_is_disabled(const struct server_line_admin *admin,
                                   const struct upstream_server_conf *conf);
unsigned server_line_admin_weight(const struct server_line_admin *admin,
                                  const struct upstream_server_conf *conf, unsigned found);
unsigned server_line_admin_max(const struct server_line_admin *admin,
                               const struct upstream_server_conf *conf);

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

/*
 * server_line_own_with(own, name, admin) / server_line_own_without(own, forget):
 * Copy ${own} (or NULL), with ${admin} for ${name} / without the settings ${forget}.
 *
 * Owns:   the caller calls server_line_own_free()
 * Errors: NULL (out of memory)
 */
struct server_line_own *server_line_own_with(const struct server_line_own *own, const char *name,
                                             const struct server_line_admin *admin) NODISCARD;
struct server_line_own *server_line_own_without(const struct server_line_own *own,
                                                unsigned forget) NODISCARD;

/*
 * server_line_ready(line, one) / server_line_plain_weight(line, one):
 * Return the state of ${line} when it is enabled / its weight without a setting; -1: that of its
 * SRV records. With ${one}, that of a single server, which inherits the settings of its line.
 *
 * Thread: control loop, or main before start
 */
enum server_line_state server_line_ready(const struct server_line *line, bool one);
int server_line_plain_weight(const struct server_line *line, bool one);

/*
 * server_line_own_get(line, name):
 * Return the settings of the single server ${name}; SERVER_LINE_AS_CONFIGURED: as the line.
 *
 * Thread: control loop, or main before start
 */
struct server_line_admin server_line_own_get(const struct server_line *line, const char *name);

/*
 * server_line_own_admin(line, name) / server_line_own_is_disabled(line, name) /
 * server_line_own_weight(line, name, found) / server_line_own_max(line, name):
 * Return the settings in force for the server ${name}: its own, else those of the line / what they
 * make of the line.
 *
 * Thread: control loop, or main before start
 */
struct server_line_admin server_line_own_admin(const struct server_line *line, const char *name);
bool server_line_own_is_disabled(const struct server_line *line, const char *name);
unsigned server_line_own_weight(const struct server_line *line, const char *name, unsigned found);
unsigned server_line_own_max(const struct server_line *line, const char *name);

/* server_line_own_free(own): free ${own} or NULL. */
void server_line_own_free(struct server_line_own *own);

#endif
