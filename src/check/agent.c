#include "check/agent.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "balance/balancer.h"
#include "base/parse.h"

#define SEPARATORS " \t,"

static const struct {
    const char *word;
    enum agent_health health;
    enum agent_use use;
} agent_words[] = {
    {"up", AGENT_SAYS_UP, AGENT_SAYS_NO_USE},
    {"down", AGENT_SAYS_DOWN, AGENT_SAYS_NO_USE},
    {"fail", AGENT_SAYS_DOWN, AGENT_SAYS_NO_USE},
    {"stopped", AGENT_SAYS_DOWN, AGENT_SAYS_NO_USE},
    {"ready", AGENT_SAYS_NO_HEALTH, AGENT_SAYS_READY},
    {"drain", AGENT_SAYS_NO_HEALTH, AGENT_SAYS_DRAIN},
    {"maint", AGENT_SAYS_NO_HEALTH, AGENT_SAYS_MAINT},
};

enum agent_line_state agent_line_add(struct agent_line *l, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        l->text[l->n] = '\0';
        if (data[i] == '\r' || data[i] == '\n')
            return AGENT_LINE_WHOLE;
        if ((data[i] < ' ' && data[i] != '\t') || data[i] == 0x7f)
            return AGENT_LINE_BINARY;
        if (l->n == AGENT_LINE_BYTES)
            return AGENT_LINE_LONG;
        l->text[l->n++] = data[i] < 0x80 ? (char)data[i] : '?';
    }
    return AGENT_LINE_PART;
}

static bool agent_parse_name(struct agent_answer *out, const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(agent_words); i++) {
        if (strcasecmp(word, agent_words[i].word) != 0)
            continue;
        if (agent_words[i].health != AGENT_SAYS_NO_HEALTH)
            out->health = agent_words[i].health;
        else
            out->use = agent_words[i].use;
        return true;
    }
    return false;
}

static bool agent_parse_number(struct agent_answer *out, char *word)
{
    size_t len = strlen(word);
    uint64_t number;

    if (strncasecmp(word, "maxconn:", strlen("maxconn:")) == 0) {
        if (parse_uint(&number, word + strlen("maxconn:"), AGENT_MAX_CONNECTIONS) < 0)
            return false;
        out->has_max_connections = true;
        out->max_connections = (unsigned)number;
        return true;
    }
    if (word[len - 1] != '%')
        return false;
    word[len - 1] = '\0';
    if (parse_uint(&number, word, AGENT_MAX_PERCENT) < 0)
        return false;
    out->has_percent = true;
    out->percent = (unsigned)number;
    return true;
}

const char *agent_parse(struct agent_answer *out, const char *line)
{
    struct agent_answer answer = {.health = AGENT_SAYS_NO_HEALTH};
    char text[AGENT_LINE_BYTES + 1];
    char *next = NULL, *word;
    unsigned n = 0;

    MUST(strlen(line) <= AGENT_LINE_BYTES);
    strcpy(text, line);
    text[strcspn(text, "#")] = '\0'; /* a description follows */
    for (word = strtok_r(text, SEPARATORS, &next); word; word = strtok_r(NULL, SEPARATORS, &next)) {
        if (!agent_parse_name(&answer, word) && !agent_parse_number(&answer, word))
            return "a word that is not known";
        n++;
    }
    if (n == 0)
        return "no word";
    *out = answer;
    return NULL;
}

unsigned agent_weight(unsigned weight, unsigned percent)
{
    uint64_t share = ((uint64_t)weight * percent + 50) / 100;

    if (share == 0 && weight > 0 && percent > 0)
        return 1;
    return share < BALANCER_MAX_WEIGHT ? (unsigned)share : BALANCER_MAX_WEIGHT;
}
