/*
 * config/config_edits: servers that an administrator adds and removes at run time.
 *
 *   configuration of the file + edits = edited configuration
 *
 *   config_edits_begin -> config_edits_server ... -> config_edits_end | config_edits_cancel
 *
 * An edited configuration shares all but the upstreams with edits with that of the file. Each edit
 * knows the server's line in the file: it ends when another file has another line (or none, or has
 * one now), see config_edits_move().
 *
 * Servers of the file stay in its order, also when they are removed and added again, perhaps with
 * another line; the others follow, in the order of their edits.
 */
#ifndef CONFIG_CONFIG_EDITS_H
#define CONFIG_CONFIG_EDITS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/must.h"

struct config;
struct config_edits;

#define CONFIG_EDITS_PROBLEM_BYTES 1024

struct config_edit {
    const char *upstream, *server; /* `server`: ID, in lower case */
    const char *line;              /* as in the file: ADDRESS and words; NULL: remove it */
    bool is_looked_up; /* set: the server is a name, whose first lookup a reload waits for */
    char problem[CONFIG_EDITS_PROBLEM_BYTES]; /* set after an error */
};

/*
 * config_edits_begin(out, running, max):
 * Begin to edit a copy of ${running}, by at most ${max} edits.
 *
 * Owns:   holds ${running} as far as needed
 * Errors: 0; -ENOMEM
 */
int config_edits_begin(struct config_edits **out, const struct config *running,
                       unsigned max) NODISCARD;

/*
 * config_edits_server(e, edit):
 * Add or remove a server.
 *
 * Errors: 0; -ENOENT (no such upstream or server); -EEXIST; -EINVAL (wrong ID or line, or the last
 *         server of its upstream); -E2BIG: nothing is changed. -ENOMEM: only cancel is left
 */
int config_edits_server(struct config_edits *e, struct config_edit *edit) NODISCARD;

/*
 * config_edits_end(e) / config_edits_cancel(e):
 * Return the edited configuration / forget the edits. Both free ${e}.
 *
 * Owns:   the caller calls config_free()
 */
struct config *config_edits_end(struct config_edits *e);
void config_edits_cancel(struct config_edits *e);

/*
 * config_edits_move(config, running, notes) / config_edits_read(config, text, notes):
 * Replace ${*config} by the same file with the edits of ${running} / those in ${text}, written by
 * config_edits_write(). Edits of a server with another line in this file than in that of the edit
 * end, and such that are wrong now: a line in ${notes} for each that had an effect.
 *
 * Owns:   ${*config} is freed if it is replaced
 * Errors: 0; -ENOMEM (${*config} is unchanged)
 */
int config_edits_move(struct config **config, const struct config *running, FILE *notes) NODISCARD;
int config_edits_read(struct config **config, const char *text, FILE *notes) NODISCARD;

/*
 * config_edits_write(config, f):
 * Write the edits, for the process that replaces this one:
 *
 *   edit UPSTREAM/ID + N BEFORE LINE    N bytes of BEFORE, the line in the file; "-": none
 *   edit UPSTREAM/ID - N BEFORE         removed
 */
void config_edits_write(const struct config *config, FILE *f);

/*
 * config_edits_count(config) / config_edits_base(config):
 * Return the number of edits / the configuration of the file, without them.
 *
 * Owns:   the caller calls config_free() for the base
 */
unsigned config_edits_count(const struct config *config);
struct config *config_edits_base(struct config *config);

#endif
