/* daemon/report: see report.h. */
#include "daemon/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct problem {
    struct report_place at; /* its path is ours; NULL: the report's */
    unsigned order;         /* qsort(3) is not stable */
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

/* Takes ${text} over; NULL: there was no memory for it. */
static void add(struct report *r, const struct report_place *at, char *text)
{
    struct problem p = {.at = *at, .order = r->n_kept, .text = text};

    if (at->path != NULL)
        p.at.path = strdup(at->path);
    if (text == NULL || (at->path != NULL && p.at.path == NULL)) {
        r->lost = true;
        free((char *)p.at.path);
        free(text);
        return;
    }
    r->kept[r->n_kept++] = p;
}

static char *PRINTF_LIKE(1, 0) text_of(const char *format, va_list args)
{
    char *text;

    return vasprintf(&text, format, args) < 0 ? NULL : text;
}

void report_add(struct report *r, unsigned line, const char *format, ...)
{
    va_list args;

    if (r->count++ >= REPORT_KEPT)
        return;
    va_start(args, format);
    add(r, &(struct report_place){.line = line}, text_of(format, args));
    va_end(args);
}

void report_add_in(struct report *r, const struct report_place *at, const char *format, ...)
{
    va_list args;

    if (r->count++ >= REPORT_KEPT)
        return;
    va_start(args, format);
    add(r, at, text_of(format, args));
    va_end(args);
}

unsigned report_count(const struct report *r)
{
    return r->count;
}

static int compare(const void *va, const void *vb)
{
    const struct problem *a = va, *b = vb;

    if (a->at.line != b->at.line)
        return a->at.line < b->at.line ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

int report_write(struct report *r, FILE *out)
{
    qsort(r->kept, r->n_kept, sizeof(r->kept[0]), compare);
    for (unsigned i = 0; i < r->n_kept; i++) {
        const struct problem *p = &r->kept[i];

        fprintf(out, "%s:%u: %s\n", p->at.path != NULL ? p->at.path : r->path,
                p->at.path != NULL ? p->at.path_line : p->at.line, p->text);
    }
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
    for (unsigned i = 0; i < r->n_kept; i++) {
        free((char *)r->kept[i].at.path);
        free(r->kept[i].text);
    }
    free(r);
}
