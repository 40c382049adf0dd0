/* config/suggest: see suggest.h. */
#include "config/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MAX_DISTANCE 2

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Three rows of the table of distances between all beginnings of ${a} and ${b}. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned rows[3][SUGGEST_WORD_BYTES + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_len; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *spare = before;

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = last[j - 1] + !same(a[i - 1], b[j - 1]);
            row[j] = least(row[j], least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
        before = last;
        last = row;
        row = spare;
    }
    return last[b_len];
}

void suggest_begin(struct suggest *s, const char *word)
{
    s->word = word;
    s->best = NULL;
    s->distance = MAX_DISTANCE + 1;
}

void suggest_offer(struct suggest *s, const char *known)
{
    size_t word_len = strnlen(s->word, SUGGEST_WORD_BYTES + 1);
    size_t known_len = strnlen(known, SUGGEST_WORD_BYTES + 1);
    unsigned d;

    if (word_len > SUGGEST_WORD_BYTES || known_len > SUGGEST_WORD_BYTES)
        return;
    d = distance(s->word, word_len, known, known_len);
    if (d < s->distance && 2 * d < known_len) {
        s->distance = d;
        s->best = known;
    }
}
