/*
 * check/check_pattern: regular expressions over a stream of bytes, in bounded time.
 *
 * POSIX extended syntax without back-references, compiled to the position automaton of Glushkov. It
 * is simulated with a bit per position: each byte costs the same, however the answer looks or is
 * split, and nothing of the answer is kept.
 *
 * Source: Glushkov, "The abstract theory of automata" (1961); Navarro and Raffinot, "Flexible
 *         Pattern Matching in Strings" (2002), 5.2
 */
#ifndef CHECK_CHECK_PATTERN_H
#define CHECK_CHECK_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct arena;

/* Most characters of an expression, with repetitions written out. */
#define CHECK_PATTERN_POSITIONS 256

#define CHECK_PATTERN_WORDS (CHECK_PATTERN_POSITIONS / 64)

struct check_pattern_set {
    uint64_t words[CHECK_PATTERN_WORDS];
};

struct check_pattern;

/*
 * check_pattern_compile(out, a, text, problem):
 * Compile ${text}: characters, `.` (all but a newline), [classes] with [:names:], groups, `|`, `*`,
 * `+`, `?`, `{m,n}`, `^` and `$` (start and end of a line), and the escapes \d \w \s \r \n \t \xNN
 * and of punctuation.
 *
 * Owns:   ${out} lives as long as ${a}
 * Errors: 0; -EINVAL (*${problem}: why); -ENOMEM
 */
int check_pattern_compile(struct check_pattern **out, struct arena *a, const char *text,
                          const char **problem) NODISCARD;

/* check_pattern_begin(p, set, at_line_start): begin a search with ${set}. */
void check_pattern_begin(const struct check_pattern *p, struct check_pattern_set *set,
                         bool at_line_start);

/* check_pattern_next(p, set, byte): read ${byte}; does a match end with it? */
bool check_pattern_next(const struct check_pattern *p, struct check_pattern_set *set, uint8_t byte);

/* check_pattern_is_begun(set): has a possible match begun? */
bool check_pattern_is_begun(const struct check_pattern_set *set);

#endif
