/*
 * stats/exposition: figures as metrics, in Prometheus' text format (version 0.0.4).
 *
 * The format wants all series of a metric together, but a walk visits object after object. So all
 * values are collected, then all are written; collecting and writing may pause after each step.
 *
 *   show objects to exposition_visitor() -> exposition_write() until it returns 0
 *
 * Histograms show every second bucket of engine/histogram; the limits are powers of 4, in us.
 */
#ifndef STATS_EXPOSITION_H
#define STATS_EXPOSITION_H

#include "base/must.h"
#include "base/text.h"

struct exposition;
struct figure_visitor;

#define EXPOSITION_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/*
 * exposition_create(out):
 * Create an empty exposition.
 *
 * Errors: 0; -ENOMEM
 */
int exposition_create(struct exposition **out) NODISCARD;

/*
 * exposition_visitor(e):
 * Return the visitor that collects the values. Show each object to it once.
 *
 * Thread: owner of ${e}
 */
struct figure_visitor *exposition_visitor(struct exposition *e);

/*
 * exposition_write(e, out):
 * Append the next few series to ${out}. Call this after all objects were shown to the visitor.
 *
 * Thread: owner of ${e}
 * Errors: 0 (all is written); 1 (more series are left); -ENOMEM (also of the visitor)
 */
int exposition_write(struct exposition *e, struct text *out) NODISCARD;

/* exposition_destroy(e): free ${e}, which may be NULL. Thread: owner of ${e} */
void exposition_destroy(struct exposition *e);

#endif
