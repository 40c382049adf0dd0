/* check/agent: the words of an agent. */
#include <string.h>

#include "check/agent.h"
#include "support/suite.h"

static void setup(void)
{
}

static void teardown(void)
{
}

GROUP(agent, setup, teardown);

static const struct {
    const char *line;
    struct agent_answer answer;
} good[] = {
    {"up", {.health = AGENT_SAYS_UP}},
    {"DOWN", {.health = AGENT_SAYS_DOWN}},
    {"fail#disk full, drain", {.health = AGENT_SAYS_DOWN}},
    {"stopped # up", {.health = AGENT_SAYS_DOWN}},
    {"ready", {.use = AGENT_SAYS_READY}},
    {"drain", {.use = AGENT_SAYS_DRAIN}},
    {"maint", {.use = AGENT_SAYS_MAINT}},
    {"75%", {.has_percent = true, .percent = 75}},
    {"0%", {.has_percent = true}},
    {"maxconn:30", {.has_max_connections = true, .max_connections = 30}},
    {" up,\tready 50% ,MaxConn:0",
     {AGENT_SAYS_UP, AGENT_SAYS_READY, true, true, .percent = 50, .max_connections = 0}},
    {"down up", {.health = AGENT_SAYS_UP}},
};

TEST_EACH(agent, words_are_understood, ARRAY_LEN(good))
{
    struct agent_answer a = {.health = AGENT_SAYS_NO_HEALTH};

    ck_assert_ptr_null(agent_parse(&a, good[_i].line));
    ck_assert_int_eq(a.health, good[_i].answer.health);
    ck_assert_int_eq(a.use, good[_i].answer.use);
    ck_assert_int_eq(a.has_percent, good[_i].answer.has_percent);
    ck_assert_uint_eq(a.percent, good[_i].answer.percent);
    ck_assert_int_eq(a.has_max_connections, good[_i].answer.has_max_connections);
    ck_assert_uint_eq(a.max_connections, good[_i].answer.max_connections);
}

static const char *const bad[] = {"",           " , ",  "# up",   "up now",   "%",
                                  "-1%",        "1.5%", "25601%", "maxconn:", "maxconn:1000001",
                                  "maxconn: 5", "75"};

TEST_EACH(agent, a_bad_answer_has_a_reason_and_changes_nothing, ARRAY_LEN(bad))
{
    struct agent_answer a = {.health = AGENT_SAYS_DOWN, .use = AGENT_SAYS_DRAIN};

    ck_assert_ptr_nonnull(agent_parse(&a, bad[_i]));
    ck_assert_int_eq(a.health, AGENT_SAYS_DOWN);
    ck_assert_int_eq(a.use, AGENT_SAYS_DRAIN);
}

TEST(agent, a_share_of_a_weight_is_0_only_by_0_percent)
{
    ck_assert_uint_eq(agent_weight(100, 75), 75);
    ck_assert_uint_eq(agent_weight(1, 1), 1);
    ck_assert_uint_eq(agent_weight(1, 0), 0);
    ck_assert_uint_eq(agent_weight(0, 100), 0);
    ck_assert_uint_eq(agent_weight(200, 200), 256);
    ck_assert_uint_eq(agent_weight(256, AGENT_MAX_PERCENT), 256);
}

static const struct {
    const char *bytes;
    enum agent_line_state state;
    const char *text;
} lines[] = {
    {"up", AGENT_LINE_PART, NULL},          {"up\nrest", AGENT_LINE_WHOLE, "up"},
    {"down\r\n", AGENT_LINE_WHOLE, "down"}, {"\n", AGENT_LINE_WHOLE, ""},
    {"u\001p\n", AGENT_LINE_BINARY, NULL},  {"up #\xc3\xa4\n", AGENT_LINE_WHOLE, "up #??"},
};

/* In one piece, and byte by byte. */
TEST_EACH(agent, a_line_is_collected_from_any_pieces, ARRAY_LEN(lines))
{
    const uint8_t *bytes = (const uint8_t *)lines[_i].bytes;
    struct agent_line whole = {.n = 0}, pieces = {.n = 0};
    enum agent_line_state state = AGENT_LINE_PART;

    ck_assert_int_eq(agent_line_add(&whole, bytes, strlen(lines[_i].bytes)), lines[_i].state);
    for (size_t i = 0; lines[_i].bytes[i] != '\0' && state == AGENT_LINE_PART; i++)
        state = agent_line_add(&pieces, bytes + i, 1);
    ck_assert_int_eq(state, lines[_i].state);
    if (lines[_i].text) {
        ck_assert_str_eq(whole.text, lines[_i].text);
        ck_assert_str_eq(pieces.text, lines[_i].text);
    }
}

TEST(agent, a_line_has_at_most_256_bytes)
{
    struct agent_line l = {.n = 0};
    uint8_t bytes[AGENT_LINE_BYTES + 1];

    memset(bytes, 'x', sizeof(bytes));
    ck_assert_int_eq(agent_line_add(&l, bytes, AGENT_LINE_BYTES), AGENT_LINE_PART);
    ck_assert_int_eq(agent_line_add(&l, bytes, 1), AGENT_LINE_LONG);
}
