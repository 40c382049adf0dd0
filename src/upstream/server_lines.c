#include "upstream/server_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int server_lines_compare(const void *a, const void *b, void *arg)
{
    const struct server_lines *ls = arg;
    unsigned one = *(const unsigned *)a, other = *(const unsigned *)b;

    return strcmp(ls->list[one]->conf.id, ls->list[other]->conf.id);
}

int server_lines_open(struct server_lines *ls, const struct upstream_server_conf *conf, unsigned n)
{
    *ls = (struct server_lines){.list = calloc((size_t)n + 1, sizeof(struct server_line *)),
                                .by_id = calloc((size_t)n + 1, sizeof(*ls->by_id))};
    if (!ls->list || !ls->by_id)
        return -ENOMEM;
    for (; ls->n < n; ls->n++) {
        int rc = server_line_create(&ls->list[ls->n], &conf[ls->n]);

        if (rc < 0)
            return rc;
        ls->by_id[ls->n] = ls->n;
    }
    qsort_r(ls->by_id, n, sizeof(*ls->by_id), server_lines_compare, ls);
    return 0;
}

void server_lines_close(struct server_lines *ls)
{
    for (unsigned i = 0; i < ls->n; i++)
        server_line_release(ls->list[i]);
    free(ls->list);
    free(ls->by_id);
    *ls = (struct server_lines){0};
}

unsigned server_lines_position(const struct server_lines *ls, const char *id)
{
    unsigned from = 0, to = ls->n;

    while (from < to) {
        unsigned middle = from + (to - from) / 2;
        int order = strcmp(id, ls->list[ls->by_id[middle]]->conf.id);

        if (order == 0)
            return ls->by_id[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return ls->n;
}

void server_lines_keep(struct server_lines *ls, struct server_line *line)
{
    unsigned position = server_lines_position(ls, line->conf.id);

    if (position == ls->n || !server_line_is(line, &ls->list[position]->conf))
        return;
    server_line_release(ls->list[position]);
    ls->list[position] = server_line_hold(line);
}
