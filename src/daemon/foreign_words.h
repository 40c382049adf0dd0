/*
 * daemon/foreign_words: the words of HAProxy, nginx and Envoy, and what they are called here.
 */
#ifndef DAEMON_FOREIGN_WORDS_H
#define DAEMON_FOREIGN_WORDS_H

#include <stddef.h>

/* Where a word stands that is not an option of a section: the kind of a section, and behind the address of a server. */
#define FOREIGN_WORDS_SECTION "section"
#define FOREIGN_WORDS_SERVER  "server"

struct foreign_word {
    const char *
        where; /* the kind of section for the name of an option, the option for its value, or one of these */
    const char *word;
    const char *here; /* begins with the word that reactord has for it */
};

/*
 * foreign_words_table(n):
 * All ${n} words, for tests.
 *
 * Thread: any
 * Errors: none
 */
const struct foreign_word *foreign_words_table(size_t *n);

/*
 * foreign_words_find(where, word, len):
 * What the first ${len} bytes of ${word} are called here, in any case of letters; NULL: it is no word of theirs.
 *
 * Thread: any
 * Errors: NULL
 */
const char *foreign_words_find(const char *where, const char *word, size_t len);

#endif
