/* ini/foreign_words: translates option names and values of HAProxy, nginx and Envoy. */
#ifndef INI_FOREIGN_WORDS_H
#define INI_FOREIGN_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* foreign_word.where for section titles and words after the address of a server or syslog. */
#define FOREIGN_WORDS_SECTION "section"
#define FOREIGN_WORDS_SERVER  "server"
#define FOREIGN_WORDS_SYSLOG  "syslog"

#define FOREIGN_WORDS_HINT_BYTES 128

/* A word of another program. `where`: an option's section, a value's option, or FOREIGN_WORDS_*. */
struct foreign_word {
    const char *where;
    const char *word;
    const char *here; /* starts with reactord's word */
};

struct foreign_words_hint {
    char text[FOREIGN_WORDS_HINT_BYTES];
    bool takes_value; /* the value is the next word of the server line */
};

/* foreign_words_table(n): return all ${n} words, for tests. */
const struct foreign_word *foreign_words_table(size_t *n);

/*
 * foreign_words_hint(out, where, word, len):
 * Write what replaces ${word} (case ignored); false: unknown.
 */
bool foreign_words_hint(struct foreign_words_hint *out, const char *where, const char *word,
                        size_t len);

#endif
