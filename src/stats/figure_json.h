/*
 * stats/figure_json: figures as JSON text: an array of objects, servers within their upstream.
 *
 *   [{"name":"web","sessions":3,...,"ended":{"client_fin":7,...}}, ...]
 *   [{"name":"app",...,"servers":[{"name":"a",...}]}, ...]
 *
 * Objects are appended one by one, never a long text at once. Durations keep the name and unit of
 * the log lines (`poll_ms`).
 */
#ifndef STATS_FIGURE_JSON_H
#define STATS_FIGURE_JSON_H

#include <stdbool.h>

#include "base/text.h"
#include "stats/figure.h"

/* An array that is being written; figure_json_begin() initialises it. */
struct figure_json {
    struct figure_visitor visitor; /* figure_json_visit */
    enum figure_subject subject;   /* objects to show; FIGURE_UPSTREAM: with servers */
    struct text *out;
    struct figure_object object; /* object whose JSON is not closed yet, if `depth` > 0 */
    unsigned depth;              /* 0: no open object; 1: one; 2: a server in an upstream */
    bool has_objects;
};

/*
 * figure_json_begin(j, subject, out) / figure_json_end(j):
 * Begin the array in ${out}, for objects that are shown to j->visitor / end it.
 *
 * Thread: owner of ${j}
 * Owns:   ${out} must live until figure_json_end(); errors are in out->failed
 */
void figure_json_begin(struct figure_json *j, enum figure_subject subject, struct text *out);
void figure_json_end(struct figure_json *j);

/*
 * figure_json_string(out, string):
 * Append ${string}, escaped and in quotes; bytes that are not UTF-8 become U+FFFD.
 *
 * Thread: owner of ${out}
 */
void figure_json_string(struct text *out, const char *string);

#endif
