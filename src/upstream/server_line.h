/*
 * upstream/server_line: a line `server.ID = ADDRESS ...` of an upstream's configuration.
 *
 * Immutable and reference-counted: users keep it while the configuration changes. An unchanged line
 * is the same object in the next configuration; a changed line is a new object with the same ID.
 */
#ifndef UPSTREAM_SERVER_LINE_H
#define UPSTREAM_SERVER_LINE_H

#include <stdatomic.h>

#include "base/must.h"
#include "upstream/upstream_server.h"

struct server_line {
    atomic_uint references;
    struct upstream_server_conf conf; /* a copy, with all that it points at */
};

/*
 * server_line_create(out, conf):
 * Copy ${conf}; the caller has the first reference.
 *
 * Thread: any
 * Errors: 0; -ENOMEM
 */
int server_line_create(struct server_line **out, const struct upstream_server_conf *conf) NODISCARD;

/*
 * server_line_is(line, conf):
 * Does ${line} equal ${conf}?
 *
 * Thread: any
 */
bool server_line_is(const struct server_line *line, const struct upstream_server_conf *conf);

/*
 * server_line_hold(line) / server_line_release(line):
 * Add a reference and return ${line}; drop one (NULL is allowed). The last drop frees ${line}.
 *
 * Thread: any
 */
struct server_line *server_line_hold(struct server_line *line);
void server_line_release(struct server_line *line);

#endif
