/* daemon/report: see report.h. */
#include "daemon/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

struct problem {
    unsigned line;
    unsigned order; /* qsort(3) is not stable */
    char *text;
};

struct report {
    const char *path;
    unsigned count;
    unsigned n_kept;
    bool lost;
    struct problem kept[REPORT_KEPT];
};

int report_create(struct report **out, const char *path)
{
    struct report *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return -ENOMEM;
    r->path = path;
    *out = r;
    return 0;
}

void report_add(struct report *r, unsigned line, const char *format, ...)
{
    struct problem *p = &r->kept[r->n_kept];
    va_list args;
    int len;

    r->count++;
    if (r->n_kept == REPORT_KEPT)
        return;
    va_start(args, format);
    len = vasprintf(&p->text, format, args);
    va_end(args);
    if (len < 0) {
        r->lost = true;
        return;
    }
    p->line = line;
    p->order = r->n_kept++;
}

unsigned report_count(const struct report *r)
{
    return r->count;
}

static int compare(const void *va, const void *vb)
{
    const struct problem *a = va, *b = vb;

    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

int report_write(struct report *r, FILE *out)
{
    qsort(r->kept, r->n_kept, sizeof(r->kept[0]), compare);
    for (unsigned i = 0; i < r->n_kept; i++)
        fprintf(out, "%s:%u: %s\n", r->path, r->kept[i].line, r->kept[i].text);
    if (r->count > REPORT_KEPT)
        fprintf(out, "%s:%u: %u more problems\n", r->path, REPORT_WHOLE_FILE,
                r->count - REPORT_KEPT);
    if (r->lost)
        return -ENOMEM;
    return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

void report_destroy(struct report *r)
{
    if (r == NULL)
        return;
    for (unsigned i = 0; i < r->n_kept; i++)
        free(r->kept[i].text);
    free(r);
}
