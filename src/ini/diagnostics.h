/*
 * ini/diagnostics: problems of a configuration file and its includes, in file order.
 */
#ifndef INI_DIAGNOSTICS_H
#define INI_DIAGNOSTICS_H

#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/must.h"

struct diagnostics;

#define DIAGNOSTICS_WHOLE_FILE 0

/* Limit of kept texts; further problems are only counted. */
#define DIAGNOSTICS_KEPT 200

/*
 * diagnostics_create(out, path):
 * Create an empty report for ${path}.
 *
 * Owns:   ${path} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int diagnostics_create(struct diagnostics **out, const char *path) NODISCARD;

/*
 * diagnostics_add(r, line, format, ...):
 * Add a problem, one line without newline. Without memory only count it.
 *
 * Thread: owner of ${r}
 * Units:  ${line} from 1, or DIAGNOSTICS_WHOLE_FILE
 */
void diagnostics_add(struct diagnostics *r, unsigned line, const char *format, ...)
    PRINTF_LIKE(3, 4);

/*
 * diagnostics_warn(r, line, format, ...):
 * Add `warning: ...` for a likely mistake. A warning is not counted, and is dropped after
 * DIAGNOSTICS_KEPT texts.
 *
 * Thread: owner of ${r}
 */
void diagnostics_warn(struct diagnostics *r, unsigned line, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* A line of another file, such as a file of access rules. */
struct diagnostics_place {
    unsigned line; /* line of the configuration that names the file */
    const char *path;
    unsigned path_line;
};

/*
 * diagnostics_add_in(r, at, format, ...):
 * Add a problem of another file; diagnostics_write() sorts it by ${at}->line.
 *
 * Thread: owner of ${r}
 */
void diagnostics_add_in(struct diagnostics *r, const struct diagnostics_place *at,
                        const char *format, ...) PRINTF_LIKE(3, 4);

/* A file, or the rest of it behind an include. */
struct diagnostics_source {
    unsigned line; /* its first line in the text of all files */
    const char *path;
    unsigned path_line; /* that line in the file; 1: the file begins */
    unsigned depth;     /* 0: not included by another file */
};

/*
 * diagnostics_add_source(r, source):
 * Record the file of the lines from ${source}->line on. Call in line order; lines before the first
 * call belong to the report's file.
 *
 * Thread: owner of ${r}
 * Owns:   ${source}->path is copied
 * Errors: 0; -ENOMEM
 */
int diagnostics_add_source(struct diagnostics *r,
                           const struct diagnostics_source *source) NODISCARD;

/*
 * diagnostics_begun_source(r, line):
 * Return the source that begins at ${line}, the last one if there are more; NULL: none does.
 *
 * Thread: owner of ${r}
 */
const struct diagnostics_source *diagnostics_begun_source(const struct diagnostics *r,
                                                          unsigned line);

/*
 * diagnostics_set_foreign(r):
 * Record that lines of another program were found: diagnostics_write() ends with a pointer to
 * reactord-migrating(7).
 *
 * Thread: owner of ${r}
 */
void diagnostics_set_foreign(struct diagnostics *r);

/*
 * diagnostics_locate(place, r, line):
 * Find the file of ${line}, and its number there.
 *
 * Thread: owner of ${r}
 * Owns:   ${place}->path is valid as long as ${r}
 */
void diagnostics_locate(struct diagnostics_place *place, const struct diagnostics *r,
                        unsigned line);

struct diagnostics_line {
    char text[320];
};

/*
 * diagnostics_line_text(out, r, line):
 * Format `line 5`, or `line 5 of PATH` for another file; return ${out}->text.
 *
 * Thread: owner of ${r}
 */
const char *diagnostics_line_text(struct diagnostics_line *out, const struct diagnostics *r,
                                  unsigned line);

/* diagnostics_line_text() into a temporary of the enclosing block. */
#define DIAGNOSTICS_LINE(r, line) \
    diagnostics_line_text(&(struct diagnostics_line){{0}}, (r), (line))

/* diagnostics_count(r): return the number of problems. Thread: owner of ${r} */
unsigned diagnostics_count(const struct diagnostics *r);

/*
 * diagnostics_write(r, out):
 * Write problems as `path:line: text`, by line, then by order of addition. Line 0 stands for the
 * whole file.
 *
 * Thread: owner of ${r}
 * Errors: 0; -ENOMEM (a problem could not be stored); -EIO
 */
int diagnostics_write(struct diagnostics *r, FILE *out) NODISCARD;

/* diagnostics_destroy(r): free ${r} or NULL. Thread: owner of ${r} */
void diagnostics_destroy(struct diagnostics *r);

/* Longer texts end in "...". */
#define QUOTE_SHOWN_BYTES 64

struct diagnostics_quote {
    char text[4 * QUOTE_SHOWN_BYTES + sizeof("'...'")];
};

/*
 * diagnostics_quote_text(q, text) / diagnostics_quote_bytes(q, text, len):
 * Format `'text'`, cut if long, bytes other than printable ASCII as \xNN; return ${q}->text.
 */
const char *diagnostics_quote_text(struct diagnostics_quote *q, const char *text);
const char *diagnostics_quote_bytes(struct diagnostics_quote *q, const char *text, size_t len);

/* diagnostics_quote_text() into a temporary of the enclosing block. */
#define QUOTE_TEXT(text) diagnostics_quote_text(&(struct diagnostics_quote){{0}}, (text))

/* Longer words are not compared. */
#define SUGGEST_WORD_BYTES 64

struct diagnostics_suggestion {
    const char *word;
    const char *best; /* NULL: no similar word so far */
    unsigned distance;
};

/*
 * diagnostics_suggest(s, word):
 * Start a search for words similar to ${word}, which must outlive ${s}.
 *
 * Thread: owner of ${s}
 */
void diagnostics_suggest(struct diagnostics_suggestion *s, const char *word);

/*
 * diagnostics_offer(s, known):
 * Set s->best to ${known} if that is more similar. Two typing errors (letter added, missing, wrong,
 * or two swapped) are allowed if most letters are right; case is ignored.
 *
 * Thread: owner of ${s}
 * Owns:   ${known} must outlive ${s}
 * Source: Damerau, "A technique for computer detection and correction of spelling errors" (1964),
 *         restricted form (optimal string alignment)
 */
void diagnostics_offer(struct diagnostics_suggestion *s, const char *known);

#endif
