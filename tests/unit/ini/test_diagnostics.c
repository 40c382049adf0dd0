/* diagnostics_suggest(): a near miss is found, and nothing else. */
#include <string.h>

#include "ini/diagnostics.h"

#include "base/must.h"
#include "support/suite.h"

static const char *const known[] = {"threads", "accept_batch", "log", "log_level", "user", "p2c"};

static const char *nearest(const char *word)
{
    struct diagnostics_suggestion s;

    diagnostics_suggest(&s, word);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        diagnostics_offer(&s, known[i]);
    return s.best != NULL ? s.best : "nothing";
}

static const struct {
    const char *word;
    const char *best;
} cases[] = {
    {"acept_batch", "accept_batch"},   /* missing */
    {"acccept_batch", "accept_batch"}, /* too much */
    {"accept-batch", "accept_batch"},  /* wrong */
    {"accetp_batch", "accept_batch"},  /* swapped */
    {"acept_btach", "accept_batch"},   /* two of them */
    {"Threads", "threads"},
    {"thread", "threads"},
    {"loglevel", "log_level"},
    {"lgo", "log"},
    {"pc", "p2c"},
    {"usr", "user"},
    {"acpt_btch", "nothing"},
    {"x", "nothing"},
    {"", "nothing"},
    {"lag_x", "nothing"},
    {"ab", "nothing"},
    {"workers", "nothing"},
};

GROUP(words, NULL, NULL);

TEST_EACH(words, misspelled_word_gets_a_suggestion, ARRAY_LEN(cases))
{
    ck_assert_msg(strcmp(nearest(cases[_i].word), cases[_i].best) == 0, "%s gives %s",
                  cases[_i].word, nearest(cases[_i].word));
}

TEST(words, nearest_word_is_suggested)
{
    struct diagnostics_suggestion s;

    diagnostics_suggest(&s, "server");
    diagnostics_offer(&s, "servants");
    diagnostics_offer(&s, "serves");
    diagnostics_offer(&s, "server");
    diagnostics_offer(&s, "serve");
    ck_assert_str_eq(s.best, "server");
    ck_assert_uint_eq(s.distance, 0);
}

TEST(words, first_of_two_equally_near_words_is_suggested)
{
    struct diagnostics_suggestion s;

    diagnostics_suggest(&s, "serves");
    diagnostics_offer(&s, "server");
    diagnostics_offer(&s, "served");
    ck_assert_str_eq(s.best, "server");
}

TEST(words, word_of_any_length_does_not_overflow)
{
    char word[300];
    struct diagnostics_suggestion s;

    for (size_t n = 0; n < sizeof(word); n++) {
        memset(word, 'a', n);
        word[n] = '\0';
        diagnostics_suggest(&s, word);
        diagnostics_offer(&s, word);
        ck_assert(n == 0 || n > SUGGEST_WORD_BYTES ? s.best == NULL : s.best == word);
        diagnostics_offer(&s, "aaaa");
    }
}
