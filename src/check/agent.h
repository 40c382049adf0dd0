/*
 * check/agent: what a server's agent answers: one line of words, as to HAProxy's agent-check.
 *
 *   up | down | fail | stopped   ready | drain | maint   75%   maxconn:30   # description
 *
 * Words are separated by blanks, tabs or commas, in any order and case. What the line does not say
 * stays as it is.
 *
 * Source: https://docs.haproxy.org/3.0/configuration.html, agent-check
 */
#ifndef CHECK_AGENT_H
#define CHECK_AGENT_H

#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

/* A longer line is refused. */
#define AGENT_LINE_BYTES 256

#define AGENT_MAX_PERCENT     25600
#define AGENT_MAX_CONNECTIONS 1000000

enum agent_health { AGENT_SAYS_NO_HEALTH, AGENT_SAYS_UP, AGENT_SAYS_DOWN };

enum agent_use { AGENT_SAYS_NO_USE, AGENT_SAYS_READY, AGENT_SAYS_DRAIN, AGENT_SAYS_MAINT };

struct agent_answer {
    enum agent_health health;
    enum agent_use use;
    bool has_percent, has_max_connections;
    unsigned percent;         /* of the configured weight */
    unsigned max_connections; /* 0: no limit */
};

/* The answer up to its first CR or LF, in ASCII. */
struct agent_line {
    unsigned n;
    char text[AGENT_LINE_BYTES + 1];
};

enum agent_line_state { AGENT_LINE_PART, AGENT_LINE_WHOLE, AGENT_LINE_LONG, AGENT_LINE_BINARY };

/* agent_line_add(l, data, len): add ${len} bytes that came; return what the line is then. */
enum agent_line_state agent_line_add(struct agent_line *l, const uint8_t *data,
                                     size_t len) NODISCARD;

/*
 * agent_parse(out, line):
 * Parse ${line}, without its end. Of two words about the same the last one counts.
 *
 * Errors: NULL; the reason: an unknown word, a bad number, or no word
 */
const char *agent_parse(struct agent_answer *out, const char *line) NODISCARD;

/* agent_weight(weight, percent): return this share of ${weight}, at most 256; 0 only by 0%. */
unsigned agent_weight(unsigned weight, unsigned percent);

#endif
