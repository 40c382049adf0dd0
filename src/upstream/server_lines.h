/* upstream/server_lines: the lines of one configuration of an upstream, indexed by ID. */
#ifndef UPSTREAM_SERVER_LINES_H
#define UPSTREAM_SERVER_LINES_H

#include "base/must.h"
#include "upstream/server_line.h"

struct server_lines {
    struct server_line **list; /* in the order of the configuration; references */
    unsigned n;
    unsigned *by_id; /* positions in `list`, sorted by ID */
};

/*
 * server_lines_open(ls, conf, n):
 * Copy the ${n} lines of ${conf}.
 *
 * Owns:   the caller calls server_lines_close(), also after an error
 * Errors: 0; -ENOMEM
 */
int server_lines_open(struct server_lines *ls, const struct upstream_server_conf *conf,
                      unsigned n) NODISCARD;

/* server_lines_close(ls): release all lines. */
void server_lines_close(struct server_lines *ls);

/*
 * server_lines_position(ls, id) / server_lines_keep(ls, line):
 * Return the position of the line with this ID; ${ls}->n: none / replace the equal line of ${ls},
 * if any, by ${line}: an unchanged line stays the same object.
 *
 * Thread: owner of ${ls}
 */
unsigned server_lines_position(const struct server_lines *ls, const char *id);
void server_lines_keep(struct server_lines *ls, struct server_line *line);

#endif
