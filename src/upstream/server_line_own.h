/*
 * upstream/server_line_own: an administrator's settings for single servers of a line, a name.
 *
 * They take precedence over those of the line, and are kept with it, also while the name does not
 * have the address. A list is replaced as a whole.
 */
#ifndef UPSTREAM_SERVER_LINE_OWN_H
#define UPSTREAM_SERVER_LINE_OWN_H

#include "base/must.h"
#include "upstream/server_line.h"

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
 * server_line_own_get(line, name):
 * Return the settings of the single server ${name}; SERVER_LINE_AS_CONFIGURED: as the line.
 *
 * Thread: control loop, or main before start
 */
struct server_line_admin server_line_own_get(const struct server_line *line, const char *name);

/*
 * server_line_own_admin(line, name) / server_line_own_is_disabled(line, name) /
 * server_line_own_weight(line, name, found):
 * Return the settings in force for the server ${name}: its own, else those of the line / call
 * server_line_is_disabled() / server_line_weight() with them.
 *
 * Thread: control loop, or main before start
 */
struct server_line_admin server_line_own_admin(const struct server_line *line, const char *name);
bool server_line_own_is_disabled(const struct server_line *line, const char *name);
unsigned server_line_own_weight(const struct server_line *line, const char *name, unsigned found);

/* server_line_own_free(own): free ${own} or NULL. */
void server_line_own_free(struct server_line_own *own);

#endif
