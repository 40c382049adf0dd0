/* config/config_edits_internal: an edit under way, for config_edits*.c. */
#ifndef CONFIG_CONFIG_EDITS_INTERNAL_H
#define CONFIG_CONFIG_EDITS_INTERNAL_H

#include <stdbool.h>

#include "base/must.h"
#include "config/config_edits.h"
#include "upstream/upstream.h"

struct arena;

/* Key of a server: this and its ID. */
#define CONFIG_EDITS_SERVER_KEY "server."

/* An edit in force. */
struct config_edits_record {
    struct arena *arena; /* owns this record and all that it points at; referenced */
    const char *upstream, *id;
    const char *text;                   /* the server's line; NULL: it is removed */
    const char *before;                 /* its line in the file; NULL: none */
    struct upstream_server_conf server; /* if there is a text */
};

struct config_edits {
    struct config *next; /* being edited */
    struct config *base; /* of the file */
    unsigned max;
    bool *is_open; /* for each section of `next`: it is a copy, and may be changed */
};

/*
 * config_edits_keep(a, other):
 * Keep ${other} as long as ${a} lives.
 *
 * Errors: 0; -ENOMEM
 */
int config_edits_keep(struct arena *a, struct arena *other) NODISCARD;

/*
 * config_edits_open(e, i):
 * Copy the section ${i}, so that its servers can be changed.
 *
 * Errors: 0; -ENOMEM
 */
int config_edits_open(struct config_edits *e, unsigned i) NODISCARD;

/*
 * config_edits_find_section(config, upstream) / config_edits_line_of(config, upstream, id):
 * Return the number of a section, or -1 / the line of a server; NULL: none.
 */
int config_edits_find_section(const struct config *config, const char *upstream);
const char *config_edits_line_of(const struct config *config, const char *upstream, const char *id);

/*
 * config_edits_remove(e, edit, last):
 * Remove a server, as config_edits_server(); with ${last} also the last one of its upstream.
 *
 * Errors: as config_edits_server()
 */
int config_edits_remove(struct config_edits *e, struct config_edit *edit, bool last) NODISCARD;

#endif
