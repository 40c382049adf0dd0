/*
 * ctl/ctl_pages: a list that the daemon answers in pages: {KEY: rows, "matched": N, "next": CURSOR}.
 */
#ifndef CTL_CTL_PAGES_H
#define CTL_CTL_PAGES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

struct ctl_list;

struct ctl_pages {
    const char *path; /* of the request */
    const char *key;  /* of the rows, and what they are in plain words */
    const struct ctl_list *list;
    void (*put_query)(FILE *out, const struct ctl_arguments *a); /* "&NAME=VALUE" for each option */
    bool reports_rest; /* say also in an error message how many rows were left out */
};

/*
 * ctl_pages_show(p, c, a):
 * Print as many rows as the option `limit` says (100; 0: all), or the answers as JSON. Below a
 * table on a terminal, say how many there are if some were left out.
 */
enum ctl_exit ctl_pages_show(const struct ctl_pages *p, struct ctl_context *c,
                             const struct ctl_arguments *a);

#endif
