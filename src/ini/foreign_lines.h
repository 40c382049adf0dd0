/*
 * ini/foreign_lines: explains lines of HAProxy and nginx, in whatever section they stand.
 *
 * Unlike ini/foreign_words, which translates a key or value in its section, a hint here names
 * the section. The longest phrase at the start of the line is used: `option httpchk` before
 * `option`.
 */
#ifndef INI_FOREIGN_LINES_H
#define INI_FOREIGN_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct foreign_words_hint;

/* Options and values in quotes are followed by their section: `'log' in [reactord]`. */
struct foreign_line {
    const char *phrase; /* words with one blank between */
    const char *hint;
};

/* foreign_lines_table(n): return all ${n} phrases, for tests. */
const struct foreign_line *foreign_lines_table(size_t *n);

/*
 * foreign_lines_find(line, n_words):
 * Return the hint for ${line}, and the number of words in its phrase; NULL: unknown. Case is
 * ignored, and a ';' behind a word.
 */
const char *foreign_lines_find(const char *line, unsigned *n_words);

/*
 * foreign_lines_hint(words, section, line):
 * Return the hint for ${line}: of its section by ini/foreign_words, unless a longer phrase is
 * known here; NULL: unknown. ${section} begins with its kind; "": none.
 *
 * Owns:   the hint may be in ${words}
 */
const char *foreign_lines_hint(struct foreign_words_hint *words, const char *section,
                               const char *line);

/* foreign_lines_is_nginx(line): does ${line} end like one of nginx, in ';', '{' or '}'? */
bool foreign_lines_is_nginx(const char *line);

#endif
