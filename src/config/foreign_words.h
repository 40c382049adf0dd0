/*
 * config/foreign_words: option names and values of HAProxy, nginx and Envoy in reactord's words.
 */
#ifndef CONFIG_FOREIGN_WORDS_H
#define CONFIG_FOREIGN_WORDS_H

#include <stddef.h>

/* foreign_word.where for section titles and words after a server's address. */
#define FOREIGN_WORDS_SECTION "section"
#define FOREIGN_WORDS_SERVER  "server"

/* ${where}: section kind for an option, option for a value, or FOREIGN_WORDS_*. */
struct foreign_word {
    const char *where;
    const char *word;
    const char *here; /* starts with reactord's word */
};

/*
 * foreign_words_table(n):
 * Return all ${n} words, for tests.
 *
 * Thread: any
 */
const struct foreign_word *foreign_words_table(size_t *n);

/*
 * foreign_words_find(where, word, len):
 * Return reactord's word for ${word}, ignoring case; NULL: unknown.
 *
 * Thread: any
 */
const char *foreign_words_find(const char *where, const char *word, size_t len);

#endif
