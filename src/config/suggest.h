/*
 * config/suggest: the known word that an unknown one was probably meant to be.
 */
#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

/* The longest word that is compared; a longer one has no near miss. */
#define SUGGEST_WORD_BYTES 64

struct suggest {
    const char *word;
    const char *best; /* NULL: nothing offered so far is near */
    unsigned distance;
};

/*
 * suggest_begin(s, word):
 * Look for what ${word} could mean.
 *
 * Thread: the user of ${s}
 * Owns:   nothing; ${word} must live as long as ${s} is used
 */
void suggest_begin(struct suggest *s, const char *word);

/*
 * suggest_offer(s, known):
 * ${known} becomes s->best when it is at most two typing errors away (a letter too much, missing,
 * wrong, or two swapped), in most of its letters right, and nearer than what was offered before.
 * Case counts for nothing.
 *
 * Thread: the user of ${s}
 * Owns:   nothing; ${known} must live as long as s->best is used
 * Source: Damerau, "A technique for computer detection and correction of spelling errors" (1964),
 *         in its restricted form (optimal string alignment)
 */
void suggest_offer(struct suggest *s, const char *known);

#endif
