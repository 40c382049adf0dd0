#include "daemon/cli.h"

#include <errno.h>
#include <getopt.h>
#include <gnu/libc-version.h>
#include <string.h>

#include "engine/loop.h"

#define TEXT_OF(x)          #x
#define VERSION_TEXT(x)     TEXT_OF(x)
#define VERSION_OF(a, b, c) VERSION_TEXT(a) "." VERSION_TEXT(b) "." VERSION_TEXT(c)

#ifdef __clang__
#define COMPILER "clang " VERSION_OF(__clang_major__, __clang_minor__, __clang_patchlevel__)
#else
#define COMPILER "gcc " VERSION_OF(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)
#endif

enum { OPTION_DUMP_CONFIG = 256 }; /* above all characters */

static const struct option long_options[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"dump-config", optional_argument, NULL, OPTION_DUMP_CONFIG},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "Usage: reactord [-c FILE] [-t | --dump-config[=origins]]\n"
    "       reactord -V | -h\n"
    "\n"
    "Echo or proxy TCP and unix stream connections, in the foreground.\n"
    "\n"
    "  -c, --config FILE  read FILE instead of " REACTORD_CONFIG "\n"
    "  -t, --test         check the configuration and exit; nothing is bound\n"
    "      --dump-config  write the configuration in effect and exit; with =origins,\n"
    "                     say where each value is from\n"
    "  -V, --version      write versions and exit\n"
    "  -h, --help         write this text and exit\n"
    "\n"
    "Signals:\n"
    "  SIGTERM            stop accepting, let sessions finish; a second one cuts them\n"
    "  SIGQUIT            as the first SIGTERM\n"
    "  SIGINT             stop at once, cutting open sessions\n"
    "  SIGUSR1            reopen the log file and the access logs\n"
    "  SIGUSR2            replace the running program while clients are served\n"
    "  SIGRTMIN           write statistics to the log\n"
    "  SIGHUP             read the configuration again and apply it\n"
    "\n"
    "Exit status:\n"
    "  0  stopped as asked\n"
    "  1  the configuration has errors or cannot be read\n"
    "  2  the command line has errors\n"
    "  3  could not start: address in use, permission, user, pid file or log\n"
    "  4  failed while running\n"
    "\n"
    "See reactord(8) and reactord.ini(5).\n";

static void cli_ask_for(struct cli *cli, enum cli_action action)
{
    if (action > cli->action)
        cli->action = action;
}

static void cli_print_refusal(int c, const char *word, FILE *errors)
{
    char letter[] = {'-', (char)optopt, '\0'};
    bool is_long = strncmp(word, "--", 2) == 0;

    if (c == ':')
        fprintf(errors, "reactord: option '%s' needs a value\n", is_long ? word : letter);
    else if (is_long && optopt != 0)
        fprintf(errors, "reactord: option '%s' takes no value\n", word);
    else
        fprintf(errors, "reactord: unknown option '%s'\n", is_long ? word : letter);
}

static int cli_take_dump(struct cli *cli, FILE *errors)
{
    if (optarg && strcmp(optarg, "origins") != 0) {
        fprintf(errors,
                "reactord: option '--dump-config=%s' is not known (--dump-config=origins)\n",
                optarg);
        return -EINVAL;
    }
    cli_ask_for(cli, optarg ? CLI_DUMP_ORIGINS : CLI_DUMP_CONFIG);
    return 0;
}

static int cli_take_option(struct cli *cli, int c, const char *word, FILE *errors)
{
    switch (c) {
    case 'c': cli->config_path = optarg; return 0;
    case 't': cli_ask_for(cli, CLI_TEST); return 0;
    case OPTION_DUMP_CONFIG: return cli_take_dump(cli, errors);
    case 'V': cli_ask_for(cli, CLI_VERSION); return 0;
    case 'h': cli_ask_for(cli, CLI_HELP); return 0;
    default: cli_print_refusal(c, word, errors); return -EINVAL;
    }
}

int cli_parse(struct cli *out, int argc, char **argv, FILE *errors)
{
    struct cli cli = {.action = CLI_RUN, .config_path = REACTORD_CONFIG};
    int c, rc = 0;

    optind = 1;
    while (rc == 0) {
        /* optind stays the same while getopt_long() reads a word such as -tx */
        const char *word = argv[optind];

        /* "+": stop at the first argument that is no option; ":": report a missing value. */
        c = getopt_long(argc, argv, "+:c:tVh", long_options, NULL);
        if (c == -1)
            break;
        rc = cli_take_option(&cli, c, word, errors);
    }
    if (rc == 0 && optind < argc) {
        fprintf(errors, "reactord: unexpected argument '%s'\n", argv[optind]);
        rc = -EINVAL;
    }
    if (rc < 0)
        fputs("Try 'reactord --help' for the options.\n", errors);
    else
        *out = cli;
    return rc;
}

void cli_print_help(FILE *out)
{
    fputs(help_text, out);
}

void cli_print_version(FILE *out)
{
    char backend[64];

    loop_backend_text(backend, sizeof(backend));
    fprintf(out,
            "reactord " REACTORD_VERSION "\n"
            "  event loop  %s\n"
            "  systemd     libsystemd " REACTORD_LIBSYSTEMD "\n"
            "  ini files   iniparser (tells no version)\n"
            "  C library   glibc %s (built with %d.%d)\n"
            "  compiler    " COMPILER "\n",
            backend, gnu_get_libc_version(), __GLIBC__, __GLIBC_MINOR__);
}
