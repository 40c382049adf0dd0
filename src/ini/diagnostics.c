#include "ini/diagnostics.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct problem {
    struct diagnostics_place at; /* `path` is owned; NULL: the report's file */
    unsigned order;              /* for a stable qsort(3) */
    char *text;
};

struct diagnostics {
    struct diagnostics_source *sources;
    unsigned n_sources;
    const char *path;
    unsigned count;
    unsigned n_omitted; /* problems beyond DIAGNOSTICS_KEPT */
    unsigned n_kept;    /* problems and warnings */
    bool lost;
    bool foreign;
    struct problem kept[DIAGNOSTICS_KEPT];
};

int diagnostics_create(struct diagnostics **out, const char *path)
{
    struct diagnostics *r = calloc(1, sizeof(*r));

    if (!r)
        return -ENOMEM;
    r->path = path;
    *out = r;
    return 0;
}

/* Append a problem; takes over ${text}, which is NULL if memory was short. */
static void diagnostics_append(struct diagnostics *r, const struct diagnostics_place *at,
                               char *text)
{
    struct problem p = {.at = *at, .order = r->n_kept, .text = text};

    if (at->path)
        p.at.path = strdup(at->path);
    if (!text || (at->path && !p.at.path)) {
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

/* Count a problem; false: no memory left to keep its text. */
static bool diagnostics_count_problem(struct diagnostics *r)
{
    bool is_kept = r->n_kept < DIAGNOSTICS_KEPT;

    r->count++;
    r->n_omitted += !is_kept;
    return is_kept;
}

void diagnostics_add(struct diagnostics *r, unsigned line, const char *format, ...)
{
    va_list args;

    if (!diagnostics_count_problem(r))
        return;
    va_start(args, format);
    diagnostics_append(r, &(struct diagnostics_place){.line = line}, text_of(format, args));
    va_end(args);
}

void diagnostics_add_in(struct diagnostics *r, const struct diagnostics_place *at,
                        const char *format, ...)
{
    va_list args;

    if (!diagnostics_count_problem(r))
        return;
    va_start(args, format);
    diagnostics_append(r, at, text_of(format, args));
    va_end(args);
}

void diagnostics_warn(struct diagnostics *r, unsigned line, const char *format, ...)
{
    char *text, *warning = NULL;
    va_list args;

    if (r->n_kept >= DIAGNOSTICS_KEPT)
        return;
    va_start(args, format);
    text = text_of(format, args);
    va_end(args);
    if (text && asprintf(&warning, "warning: %s", text) < 0)
        warning = NULL;
    free(text);
    diagnostics_append(r, &(struct diagnostics_place){.line = line}, warning);
}

int diagnostics_add_source(struct diagnostics *r, const struct diagnostics_source *source)
{
    struct diagnostics_source *larger = realloc(r->sources, (r->n_sources + 1) * sizeof(*larger));
    char *copy = strdup(source->path);

    if (larger)
        r->sources = larger;
    if (!larger || !copy) {
        free(copy);
        return -ENOMEM;
    }
    r->sources[r->n_sources] = *source;
    r->sources[r->n_sources++].path = copy;
    return 0;
}

/* Return the source of ${line}; NULL: the report's file. */
static const struct diagnostics_source *diagnostics_source_of(const struct diagnostics *r,
                                                              unsigned line)
{
    unsigned low = 0, high = r->n_sources;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (r->sources[middle].line <= line)
            low = middle + 1;
        else
            high = middle;
    }
    return line != DIAGNOSTICS_WHOLE_FILE && low > 0 ? &r->sources[low - 1] : NULL;
}

const struct diagnostics_source *diagnostics_begun_source(const struct diagnostics *r,
                                                          unsigned line)
{
    const struct diagnostics_source *source = diagnostics_source_of(r, line);

    return source && source->line == line ? source : NULL;
}

void diagnostics_locate(struct diagnostics_place *place, const struct diagnostics *r, unsigned line)
{
    const struct diagnostics_source *source = diagnostics_source_of(r, line);

    *place = (struct diagnostics_place){.line = line, .path = r->path, .path_line = line};
    if (source) {
        place->path = source->path;
        place->path_line = source->path_line + (line - source->line);
    }
}

const char *diagnostics_line_text(struct diagnostics_line *out, const struct diagnostics *r,
                                  unsigned line)
{
    struct diagnostics_place at;

    diagnostics_locate(&at, r, line);
    if (strcmp(at.path, r->path) == 0)
        snprintf(out->text, sizeof(out->text), "line %u", at.path_line);
    else
        snprintf(out->text, sizeof(out->text), "line %u of %s", at.path_line, at.path);
    return out->text;
}

void diagnostics_set_foreign(struct diagnostics *r)
{
    r->foreign = true;
}

unsigned diagnostics_count(const struct diagnostics *r)
{
    return r->count;
}

static int diagnostics_compare(const void *va, const void *vb)
{
    const struct problem *a = va, *b = vb;

    if (a->at.line != b->at.line)
        return a->at.line < b->at.line ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

int diagnostics_write(struct diagnostics *r, FILE *out)
{
    qsort(r->kept, r->n_kept, sizeof(r->kept[0]), diagnostics_compare);
    for (unsigned i = 0; i < r->n_kept; i++) {
        const struct problem *p = &r->kept[i];
        struct diagnostics_place at = p->at;

        if (!at.path)
            diagnostics_locate(&at, r, at.line);
        fprintf(out, "%s:%u: %s\n", at.path, at.path_line, p->text);
    }
    if (r->n_omitted > 0)
        fprintf(out, "%s:%u: %u more problems\n", r->path, DIAGNOSTICS_WHOLE_FILE, r->n_omitted);
    if (r->foreign)
        fprintf(out, "%s:%u: for lines of HAProxy or nginx see reactord-migrating(7)\n", r->path,
                DIAGNOSTICS_WHOLE_FILE);
    if (r->lost)
        return -ENOMEM;
    return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

void diagnostics_destroy(struct diagnostics *r)
{
    if (!r)
        return;
    for (unsigned i = 0; i < r->n_kept; i++) {
        free((char *)r->kept[i].at.path);
        free(r->kept[i].text);
    }
    for (unsigned i = 0; i < r->n_sources; i++)
        free((char *)r->sources[i].path);
    free(r->sources);
    free(r);
}

const char *diagnostics_quote_bytes(struct diagnostics_quote *q, const char *text, size_t len)
{
    size_t shown = len < QUOTE_SHOWN_BYTES ? len : QUOTE_SHOWN_BYTES;
    char *out = q->text;

    *out++ = '\'';
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= ' ' && c <= '~')
            *out++ = (char)c;
        else
            out += sprintf(out, "\\x%02x", c);
    }
    strcpy(out, shown < len ? "...'" : "'");
    return q->text;
}

const char *diagnostics_quote_text(struct diagnostics_quote *q, const char *text)
{
    return diagnostics_quote_bytes(q, text, strlen(text));
}

#define MAX_DISTANCE 2

static unsigned diagnostics_least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool diagnostics_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edit distance; three rows of its table suffice. */
static unsigned diagnostics_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned rows[3][SUGGEST_WORD_BYTES + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_len; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *spare = before;

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = last[j - 1] + !diagnostics_same(a[i - 1], b[j - 1]);
            row[j] = diagnostics_least(row[j], diagnostics_least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && diagnostics_same(a[i - 1], b[j - 2]) &&
                diagnostics_same(a[i - 2], b[j - 1]))
                row[j] = diagnostics_least(row[j], before[j - 2] + 1);
        }
        before = last;
        last = row;
        row = spare;
    }
    return last[b_len];
}

void diagnostics_suggest(struct diagnostics_suggestion *s, const char *word)
{
    s->word = word;
    s->best = NULL;
    s->distance = MAX_DISTANCE + 1;
}

void diagnostics_offer(struct diagnostics_suggestion *s, const char *known)
{
    size_t word_len = strnlen(s->word, SUGGEST_WORD_BYTES + 1);
    size_t known_len = strnlen(known, SUGGEST_WORD_BYTES + 1);
    unsigned d;

    if (word_len > SUGGEST_WORD_BYTES || known_len > SUGGEST_WORD_BYTES)
        return;
    d = diagnostics_distance(s->word, word_len, known, known_len);
    if (d < s->distance && 2 * d < known_len) {
        s->distance = d;
        s->best = known;
    }
}
