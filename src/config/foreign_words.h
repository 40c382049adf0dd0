/*
 * config/foreign_words: option names and values of HAProxy, nginx and Envoy, and reactord's words
 * for them.
 */
#ifndef CONFIG_FOREIGN_WORDS_H
#define CONFIG_FOREIGN_WORDS_H

#include <stddef.h>

/*
 * Values of foreign_word.where besides sections and options: the title of a section; a word behind
 * a server's address.
 */
#define FOREIGN_WORDS_SECTION "section"
#define FOREIGN_WORDS_SERVER  "server"

/*
 * ${where}: for an option's name the kind of its section, for its value the option's name, or
 * FOREIGN_WORDS_*.
 */
struct foreign_word {
    const char *where;
    const char *word;
    const char *here; /* begins with reactord's word */
};

/*
 * foreign_words_table(n):
 * All ${n} words, for tests.
 *
 * Thread: any
 */
const struct foreign_word *foreign_words_table(size_t *n);

/*
 * foreign_words_find(where, word, len):
 * Find reactord's word for the first ${len} bytes of ${word}, in upper or lower case.
 *
 * Thread: any
 * Errors: NULL: not in the table
 */
const char *foreign_words_find(const char *where, const char *word, size_t len);

#endif
