/* daemon/cli: which command lines are understood, and what is said of the others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli.h"
#include "support/suite.h"

static struct cli cli;
static char words[256]; /* cli.config_path points into it */
static char *said;      /* what cli_parse() wrote to its error stream */

/* Parse a command line, given without the program's name and split at each blank. */
static int parse(const char *line)
{
    char *argv[16] = {"reactord"};
    int argc = 1, rc;
    size_t size;
    FILE *errors = open_memstream(&said, &size);

    ck_assert_ptr_nonnull(errors);
    snprintf(words, sizeof(words), "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    rc = cli_parse(&cli, argc, argv, errors);
    fclose(errors);
    return rc;
}

static void teardown(void)
{
    free(said);
}

static void assert_understood(const char *line, enum cli_action action, const char *config_path)
{
    ck_assert_int_eq(parse(line), 0);
    ck_assert_int_eq(cli.action, action);
    ck_assert_str_eq(cli.config_path, config_path);
    ck_assert_str_eq(said, "");
}

static void assert_refused(const char *line, const char *why)
{
    char expected[256];

    ck_assert_int_eq(parse(line), -EINVAL);
    snprintf(expected, sizeof(expected), "reactord: %s\nTry 'reactord --help' for the options.\n",
             why);
    ck_assert_str_eq(said, expected);
}

GROUP(cli, NULL, teardown);

TEST(cli, no_arguments_run_with_the_default_configuration)
{
    assert_understood("", CLI_RUN, REACTORD_CONFIG);
}

TEST(cli, a_configuration_can_be_named_by_the_short_option)
{
    assert_understood("-c my.ini", CLI_RUN, "my.ini");
}

TEST(cli, a_configuration_can_be_named_by_the_long_option)
{
    assert_understood("--config=my.ini", CLI_RUN, "my.ini");
}

TEST(cli, short_options_can_share_a_dash)
{
    assert_understood("-tcmy.ini", CLI_TEST, "my.ini");
}

TEST(cli, test_option_is_parsed)
{
    assert_understood("--test", CLI_TEST, REACTORD_CONFIG);
}

TEST(cli, dump_option_takes_precedence_over_the_test_option)
{
    assert_understood("--dump-config -t", CLI_DUMP_CONFIG, REACTORD_CONFIG);
}

TEST(cli, dump_with_origins_is_parsed)
{
    assert_understood("--dump-config=origins --dump-config", CLI_DUMP_ORIGINS, REACTORD_CONFIG);
}

TEST(cli, dump_of_something_else_is_refused)
{
    assert_refused("--dump-config=origin",
                   "option '--dump-config=origin' is not known (--dump-config=origins)");
}

TEST(cli, help_takes_precedence_over_all_other_options)
{
    assert_understood("-h -V -t", CLI_HELP, REACTORD_CONFIG);
}

TEST(cli, version_takes_precedence_over_options_that_need_a_configuration)
{
    assert_understood("-tV", CLI_VERSION, REACTORD_CONFIG);
}

TEST(cli, an_unknown_short_option_is_named)
{
    assert_refused("-x", "unknown option '-x'");
}

TEST(cli, an_unknown_option_in_a_cluster_is_named_alone)
{
    assert_refused("--test -tx", "unknown option '-x'");
}

TEST(cli, an_unknown_long_option_is_named_whole)
{
    assert_refused("-t --verbose=9", "unknown option '--verbose=9'");
}

TEST(cli, missing_value_of_a_short_option_is_reported)
{
    assert_refused("-t -c", "option '-c' needs a value");
}

TEST(cli, missing_value_of_a_long_option_is_reported)
{
    assert_refused("--config", "option '--config' needs a value");
}

TEST(cli, unexpected_value_is_refused)
{
    assert_refused("--test=yes", "option '--test=yes' takes no value");
}

TEST(cli, a_stray_argument_is_refused)
{
    assert_refused("-t my.ini", "unexpected argument 'my.ini'");
}

TEST(cli, a_refused_command_line_changes_nothing)
{
    cli = (struct cli){.action = CLI_RUN, .config_path = "kept"};
    ck_assert_int_eq(parse("-c other.ini -x"), -EINVAL);
    ck_assert_int_eq(cli.action, CLI_RUN);
    ck_assert_str_eq(cli.config_path, "kept");
}

/* What ${print} writes; the caller frees it. */
static char *output_of(void (*print)(FILE *out))
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(out);
    print(out);
    fclose(out);
    return text;
}

TEST(cli, help_fits_one_screen_and_names_every_option)
{
    static const char *const options[] = {
        "-c, --config",  "-t, --test", "--dump-config",
        "-V, --version", "-h, --help", "reopen the log file and the access logs"};
    char *text = output_of(cli_print_help);
    int lines = 0;

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        ck_assert_msg(strstr(text, options[i]) != NULL, "%s is missing", options[i]);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        ck_assert_msg(strlen(line) <= 80, "too wide: %s", line);
        lines++;
    }
    ck_assert_int_le(lines, 40);
    free(text);
}

TEST(cli, version_text_begins_with_the_version_and_names_the_event_library)
{
    char *text = output_of(cli_print_version);

    ck_assert_ptr_eq(strstr(text, "reactord " REACTORD_VERSION "\n"), text);
    ck_assert_ptr_nonnull(strstr(text, "libev "));
    ck_assert_ptr_nonnull(strstr(text, "glibc "));
    free(text);
}
