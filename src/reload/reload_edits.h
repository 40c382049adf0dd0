/*
 * reload/reload_edits: adds servers to the running configuration, and removes some, one after the
 * other or many at once; and changes the number of workers.
 *
 *   reload_edit() ... -> queue -> reload_edits_step(): all that wait, in one step -> done() of each
 *
 * A reload and edits exclude each other. A reload keeps the edits that still apply (config_edits).
 */
#ifndef RELOAD_RELOAD_EDITS_H
#define RELOAD_RELOAD_EDITS_H

#include <stdbool.h>

#include "server/server.h"

struct reload;

enum reload_edit_kind { RELOAD_EDIT_SERVER, RELOAD_EDIT_UNDO, RELOAD_EDIT_WORKERS };

struct reload_edit {
    struct reload_edit *next;
    enum reload_edit_kind kind; /* UNDO: all edits of servers */
    unsigned workers;           /* WORKERS: their number; 0: as configured */
    const char *upstream;
    const char *server; /* ID */
    const char *line;   /* NULL: remove the server */
    /* Called once. ${error}: why nothing was changed; NULL: it is done, see `result`. */
    void (*done)(struct reload_edit *edit, const char *error);
    int rc; /* set: 0, as config_edits_server(), or another error */
    struct server_edit result;
};

/* Error of the edits that have not begun when the process ends. */
#define RELOAD_EDITS_ENDED "the process ends"

/*
 * reload_edit(r, edit) / reload_edits_step(r, obstacle):
 * Queue ${edit} / begin what is queued, unless a reload or other edits are under way; refuse it if
 * there is an ${obstacle}. Without one, begin the change of the number of workers that the load
 * asks for, if any.
 *
 * Owns:   ${edit}, filled in up to `done`, and its texts must live until done()
 */
void reload_edit(struct reload *r, struct reload_edit *edit);
void reload_edits_step(struct reload *r, const char *obstacle);

/* reload_edits_are_open(r) / reload_edits_are_applied(r): are edits queued or begun / begun? */
bool reload_edits_are_open(const struct reload *r);
bool reload_edits_are_applied(const struct reload *r);

/* reload_edits_drop(r): call done() of all edits with RELOAD_EDITS_ENDED. */
void reload_edits_drop(struct reload *r);

#endif
