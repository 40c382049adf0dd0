/*
 * config/diagnostics: what is wrong with one configuration file, and with those it names, collected
 * and then told in the file's order.
 */
#ifndef CONFIG_DIAGNOSTICS_H
#define CONFIG_DIAGNOSTICS_H

#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/must.h"

struct diagnostics;

/* The line of a problem that the file as a whole has. */
#define REPORT_WHOLE_FILE 0

/* How many problems are kept and told; the others are only counted. */
#define REPORT_KEPT 200

/*
 * diagnostics_create(out, path):
 * A report with no problem in it, about the file at ${path}.
 *
 * Thread: any; a report has one user at a time
 * Owns:   nothing; ${path} must outlive the report
 * Errors: 0; -ENOMEM
 */
int diagnostics_create(struct diagnostics **out, const char *path) NODISCARD;

/*
 * diagnostics_add(r, line, format, ...):
 * One more problem, in one line of text without a newline. Without memory its text is lost, and
 * diagnostics_write() says so; it counts all the same.
 *
 * Thread: the user of ${r}
 * Units:  ${line} counted from 1, or REPORT_WHOLE_FILE
 */
void diagnostics_add(struct diagnostics *r, unsigned line, const char *format, ...)
    PRINTF_LIKE(3, 4);

/*
 * diagnostics_warn(r, line, format, ...):
 * As diagnostics_add(), for what is valid and likely a mistake: told as `warning: ...`, and not
 * counted. Lost when REPORT_KEPT others are kept.
 *
 * Thread: the user of ${r}
 * Units:  ${line} as for diagnostics_add()
 */
void diagnostics_warn(struct diagnostics *r, unsigned line, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* A line of another file, which a line of ours names. */
struct diagnostics_place {
    unsigned line; /* ours */
    const char *path;
    unsigned path_line;
};

/*
 * diagnostics_add_in(r, at, format, ...):
 * As diagnostics_add(), for a problem of another file: told as that one's, where our line is due.
 *
 * Thread: the user of ${r}
 */
void diagnostics_add_in(struct diagnostics *r, const struct diagnostics_place *at,
                        const char *format, ...) PRINTF_LIKE(3, 4);

/*
 * diagnostics_add_source(r, line, path, path_line):
 * From ${line} on the lines are those of the file at ${path}, from its ${path_line} on. Sources are
 * added in the order of their lines; without any all lines are the file's that the report is about.
 *
 * Thread: the user of ${r}
 * Owns:   ${path} is copied
 * Errors: 0; -ENOMEM
 */
int diagnostics_add_source(struct diagnostics *r, unsigned line, const char *path,
                           unsigned path_line) NODISCARD;

/*
 * diagnostics_begins_source(r, line):
 * Is ${line} the first of a source?
 *
 * Thread: the user of ${r}
 */
bool diagnostics_begins_source(const struct diagnostics *r, unsigned line);

struct diagnostics_line {
    char text[320];
};

/*
 * diagnostics_line_text(out, r, line):
 * `line 5`, or `line 5 of PATH` if it is not in the file that the report is about. Returns
 * ${out}->text, so that it can stand in an argument list.
 *
 * Thread: the user of ${r}
 */
const char *diagnostics_line_text(struct diagnostics_line *out, const struct diagnostics *r,
                                  unsigned line);

/*
 * diagnostics_line_text() with memory of its own, which lasts until the end of the enclosing block.
 */
#define REPORT_LINE(r, line) diagnostics_line_text(&(struct diagnostics_line){{0}}, (r), (line))

/*
 * diagnostics_count(r):
 * How many problems were added.
 *
 * Thread: the user of ${r}
 */
unsigned diagnostics_count(const struct diagnostics *r);

/*
 * diagnostics_write(r, out):
 * Write each problem as a line `path:line: text`, ordered by line, and those of one line as they
 * were added.
 *
 * Thread: the user of ${r}
 * Errors: 0; -ENOMEM (some problem's text was lost; the others are written); -EIO (${out} took an
 *         error)
 */
int diagnostics_write(struct diagnostics *r, FILE *out) NODISCARD;

/*
 * diagnostics_destroy(r):
 * Free the report; NULL is allowed.
 *
 * Thread: the user of ${r}
 */
void diagnostics_destroy(struct diagnostics *r);

/* ---- quoting ---- */

/* How much of a text is shown; the rest is "...". */
#define QUOTE_SHOWN_BYTES 64

struct diagnostics_quote {
    char text[4 * QUOTE_SHOWN_BYTES + sizeof("'...'")];
};

/*
 * diagnostics_quote_text(q, text) / diagnostics_quote_bytes(q, text, len):
 * `'text'`, where every byte that is not printable ASCII is written \xNN and a long text is cut.
 * Returns ${q}->text, so that it can stand in an argument list.
 *
 * Thread: any
 * Units:  ${len} bytes
 */
const char *diagnostics_quote_text(struct diagnostics_quote *q, const char *text);
const char *diagnostics_quote_bytes(struct diagnostics_quote *q, const char *text, size_t len);

/* diagnostics_quote_text() with memory of its own, which lasts until the end of the block that it stands in. */
#define QUOTE_TEXT(text) diagnostics_quote_text(&(struct diagnostics_quote){{0}}, (text))

/* ---- near misses ---- */

/* The longest word that is compared; a longer one has no near miss. */
#define SUGGEST_WORD_BYTES 64

struct diagnostics_suggestion {
    const char *word;
    const char *best; /* NULL: nothing offered so far is near */
    unsigned distance;
};

/*
 * diagnostics_suggest(s, word):
 * Look for what ${word} could mean.
 *
 * Thread: the user of ${s}
 * Owns:   nothing; ${word} must live as long as ${s} is used
 */
void diagnostics_suggest(struct diagnostics_suggestion *s, const char *word);

/*
 * diagnostics_offer(s, known):
 * ${known} becomes s->best when it is at most two typing errors away (a letter too much, missing,
 * wrong, or two swapped), in most of its letters right, and nearer than what was offered before.
 * Case counts for nothing.
 *
 * Thread: the user of ${s}
 * Owns:   nothing; ${known} must live as long as s->best is used
 * Source: Damerau, "A technique for computer detection and correction of spelling errors" (1964),
 *         in its restricted form (optimal string alignment)
 */
void diagnostics_offer(struct diagnostics_suggestion *s, const char *known);

#endif
