/* ctl/ctl_arguments, ctl/ctl_value: what the command line means. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/ctl_arguments.h"
#include "ctl/ctl_commands.h"
#include "support/suite.h"

static struct ctl_arguments arguments;
static char words[256]; /* `arguments` points into it */

/* Parse a command line, given without the program's name and split at each blank. */
static int parse(const char *line)
{
    char *argv[16] = {"reactorctl"};
    int argc = 1;

    snprintf(words, sizeof(words), "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return ctl_arguments_parse(&arguments, &ctl_commands, argc, argv);
}

GROUP(arguments, NULL, NULL);

TEST(arguments, without_arguments_there_is_no_command)
{
    ck_assert_int_eq(parse(""), 0);
    ck_assert_ptr_null(arguments.command);
}

TEST(arguments, common_options_stand_before_or_behind_the_command)
{
    ck_assert_int_eq(parse("-s /x status --json"), 0);
    ck_assert_str_eq(arguments.command->name, "status");
    ck_assert_str_eq(ctl_arguments_value(&arguments, "address"), "/x");
    ck_assert(ctl_arguments_has(&arguments, "json"));
    ck_assert(!ctl_arguments_has(&arguments, "timeout"));
}

TEST(arguments, options_of_a_command_may_stand_among_its_words)
{
    ck_assert_int_eq(parse("weight --timeout=1s a/b -s /x 3"), 0);
    ck_assert_uint_eq(arguments.n_words, 2);
    ck_assert_str_eq(arguments.words[0], "a/b");
    ck_assert_str_eq(arguments.words[1], "3");
    ck_assert_str_eq(ctl_arguments_value(&arguments, "timeout"), "1s");
}

TEST(arguments, options_of_a_command_are_unknown_before_it)
{
    ck_assert_int_eq(parse("--all kill"), -EINVAL);
    ck_assert_int_eq(parse("kill --all"), 0);
}

TEST(arguments, after_two_dashes_all_arguments_are_words)
{
    ck_assert_int_eq(parse("drain -- a/--wait"), 0);
    ck_assert_str_eq(arguments.words[0], "a/--wait");
    ck_assert_int_eq(parse("drain -- --wait"), -EINVAL);
}

TEST(arguments, help_needs_no_words)
{
    ck_assert_int_eq(parse("drain"), -EINVAL);
    ck_assert_int_eq(parse("drain --help"), 0);
    ck_assert_int_eq(parse("drain -V"), 0);
}

TEST(arguments, each_option_is_given_once)
{
    ck_assert_int_eq(parse("--json status --json"), -EINVAL);
}

TEST(arguments, every_command_has_help_and_takes_an_address)
{
    for (const struct ctl_command *command = ctl_commands.list; command->name; command++) {
        char line[64];

        ck_assert_ptr_eq(ctl_command_find(&ctl_commands, command->name), command);
        ck_assert_ptr_nonnull(command->run);
        ck_assert(command->help[0] >= 'a' && command->help[0] <= 'z');
        snprintf(line, sizeof(line), "%s -s /x -h", command->name);
        ck_assert_int_eq(parse(line), 0);
        ck_assert_ptr_eq(arguments.command, command);
    }
}

static const struct {
    enum ctl_value kind;
    const char *text;
    bool good;
} values[] = {
    {CTL_VALUE_DURATION, "10s", true},
    {CTL_VALUE_DURATION, "0", false},
    {CTL_VALUE_DURATION, "10", false},
    {CTL_VALUE_DURATION, "366d", false},
    {CTL_VALUE_BYTES, "10m", true},
    {CTL_VALUE_BYTES, "m", false},
    {CTL_VALUE_BYTES, "0", true},
    {CTL_VALUE_BYTES, "9223372036854775808", false},
    {CTL_VALUE_PERCENT, "100%", true},
    {CTL_VALUE_PERCENT, "0", false},
    {CTL_VALUE_NUMBER, "0", true},
    {CTL_VALUE_NUMBER, "01", false},
    {CTL_VALUE_SERVER, "a/b", true},
    {CTL_VALUE_SERVER, "a/b/c", false},
    {CTL_VALUE_SERVER, "/b", false},
    {CTL_VALUE_SERVER, "a/", false},
    {CTL_VALUE_SORT, "idle", true},
    {CTL_VALUE_SORT, "idl", false},
    {CTL_VALUE_LISTENER, "front", true},
    {CTL_VALUE_LISTENER, "a b", false},
    {CTL_VALUE_LISTENER, "a\x1b", false},
    {CTL_VALUE_LISTENER, "h\xc3\xa9", false},
    {CTL_VALUE_FILE, "/my files/x", true},
    {CTL_VALUE_FILE, "", false},
    {CTL_VALUE_SESSION_ID, "0123456789abcdef0123456789abcdef", true},
    {CTL_VALUE_SESSION_ID, "0123456789abcdef0123456789abcdeg", false},
    {CTL_VALUE_SESSION_ID, "0123456789abcdef0123456789abcdef0", false},
};

TEST_EACH(arguments, values_are_checked_by_their_kind, ARRAY_LEN(values))
{
    ck_assert_int_eq(ctl_value_check(values[_i].kind, values[_i].text) == NULL, values[_i].good);
}

TEST(arguments, values_are_read_as_checked)
{
    ck_assert_int_eq(ctl_value_ns("10s"), 10 * NS_PER_S);
    ck_assert_int_eq(ctl_value_number(CTL_VALUE_BYTES, "2k"), 2048);
    ck_assert_int_eq(ctl_value_number(CTL_VALUE_PERCENT, "50%"), 50);
    ck_assert_int_eq(ctl_value_number(CTL_VALUE_NUMBER, "7"), 7);
}
