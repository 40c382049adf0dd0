#include "ctl/ctl_arguments.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "ctl/ctl_report.h"

#define FIRST_CODE  256 /* code of the first option: above all characters */
#define SHORT_BYTES (2 * CTL_ARGUMENTS_OPTIONS + 3)

/* Arguments of getopt_long(3), and our options in the same order. */
struct ctl_arguments_syntax {
    const struct ctl_option *options[CTL_ARGUMENTS_OPTIONS];
    struct option longs[CTL_ARGUMENTS_OPTIONS + 1];
    char shorts[SHORT_BYTES];
    unsigned n;
};

static void ctl_arguments_add(struct ctl_arguments_syntax *s, const struct ctl_option *options)
{
    for (; options && options->name; options++) {
        size_t len = strlen(s->shorts);

        MUST(s->n < CTL_ARGUMENTS_OPTIONS);
        s->longs[s->n] =
            (struct option){options->name, options->value ? required_argument : no_argument, NULL,
                            FIRST_CODE + (int)s->n};
        s->options[s->n++] = options;
        if (options->letter) {
            s->shorts[len++] = options->letter;
            if (options->value)
                s->shorts[len++] = ':';
            s->shorts[len] = '\0';
        }
    }
}

/*
 * Collect the options of ${a}'s command. ${mode} "+": stop at the first word that is no option; "": go
 * on.
 */
static void ctl_arguments_build(struct ctl_arguments_syntax *s, const struct ctl_arguments *a,
                                const char *mode)
{
    *s = (struct ctl_arguments_syntax){.n = 0};
    strcat(strcpy(s->shorts, mode), ":"); /* for a missing value getopt_long(3) returns ':' */
    ctl_arguments_add(s, a->all->options);
    for (unsigned i = 0; a->command && i < CTL_COMMAND_SETS; i++)
        ctl_arguments_add(s, a->command->options[i]);
}

static const struct ctl_option *ctl_arguments_option(const struct ctl_arguments_syntax *s, int c)
{
    for (unsigned i = 0; i < s->n; i++)
        if (c == FIRST_CODE + (int)i || (c > 0 && c == s->options[i]->letter))
            return s->options[i];
    return NULL;
}

/*
 * Report a wrong option; optopt is the code of a known option, an unknown letter, or 0 for an
 * unknown long option.
 */
static int ctl_arguments_refuse(int c, const struct ctl_arguments_syntax *s, const char *word)
{
    const struct ctl_option *o = ctl_arguments_option(s, optopt);

    if (c == ':' && optopt < FIRST_CODE)
        ctl_report("option '-%c' needs a value", optopt);
    else if (c == ':')
        ctl_report("option '--%s' needs a value", o->name);
    else if (o)
        ctl_report("option '--%s' takes no value", o->name);
    else if (optopt)
        ctl_report("unknown option '-%c'", optopt);
    else
        ctl_report("unknown option '%s'", word);
    return -EINVAL;
}

static int ctl_arguments_keep(struct ctl_arguments *a, const struct ctl_option *o)
{
    const char *value = o->value ? optarg : "", *problem;

    if (ctl_arguments_has(a, o->name)) {
        ctl_report("option '--%s' is given twice", o->name);
        return -EINVAL;
    }
    problem = o->value ? ctl_value_check(o->kind, value) : NULL;
    if (problem) {
        ctl_report("--%s: '%s' %s", o->name, value, problem);
        return -EINVAL;
    }
    a->options[a->n_options++] = (struct ctl_argument){o, value};
    return 0;
}

/* Parse the options from ${argv}[1] on; then optind is the index of the first other word. */
static int ctl_arguments_take_options(struct ctl_arguments *a, const struct ctl_arguments_syntax *s,
                                      int argc, char **argv)
{
    optind = 0; /* 0 makes glibc begin a new parse, with other options */
    opterr = 0;
    for (;;) {
        int c = getopt_long(argc, argv, s->shorts, s->longs, NULL);
        const struct ctl_option *o;

        if (c == -1)
            return 0;
        o = ctl_arguments_option(s, c);
        if (!o)
            return ctl_arguments_refuse(c, s, argv[optind - 1]);
        if (ctl_arguments_keep(a, o) < 0)
            return -EINVAL;
    }
}

static const char *ctl_arguments_similar(const struct ctl_commands *all, const char *name)
{
    const char *found = NULL;

    for (const struct ctl_command *command = all->list; command->name; command++)
        if (strncmp(command->name, name, strlen(name)) == 0) {
            if (found)
                return NULL;
            found = command->name;
        }
    return found;
}

static int ctl_arguments_take_command(struct ctl_arguments *a, const char *name)
{
    const char *similar = ctl_arguments_similar(a->all, name);

    a->command = ctl_command_find(a->all, name);
    if (a->command)
        return 0;
    if (similar)
        ctl_report("unknown command '%s': is it '%s'?", name, similar);
    else
        ctl_report("unknown command '%s'", name);
    return -EINVAL;
}

static int ctl_arguments_take_words(struct ctl_arguments *a, int n, char **words)
{
    const struct ctl_word *allowed = a->command->words;

    for (int i = 0; i < n; i++) {
        const char *problem;

        if (i == CTL_COMMAND_WORDS || !allowed[i].name) {
            ctl_report("%s: unexpected argument '%s'", a->command->name, words[i]);
            return -EINVAL;
        }
        problem = ctl_value_check(allowed[i].kind, words[i]);
        if (problem) {
            ctl_report("%s: '%s' %s", allowed[i].name, words[i], problem);
            return -EINVAL;
        }
        a->words[a->n_words++] = words[i];
    }
    return 0;
}

static int ctl_arguments_check_count(const struct ctl_arguments *a)
{
    const struct ctl_word *next = &a->command->words[a->n_words];

    if (a->n_words == CTL_COMMAND_WORDS || !next->name || next->optional)
        return 0;
    if (ctl_arguments_has(a, "help") || ctl_arguments_has(a, "version"))
        return 0;
    ctl_report("%s needs %s", a->command->name, next->name);
    return -EINVAL;
}

int ctl_arguments_parse(struct ctl_arguments *out, const struct ctl_commands *all, int argc,
                        char **argv)
{
    struct ctl_arguments_syntax syntax;
    int rc;

    *out = (struct ctl_arguments){.all = all};
    ctl_arguments_build(&syntax, out, "+");
    rc = ctl_arguments_take_options(out, &syntax, argc, argv);
    if (rc < 0 || optind >= argc)
        return rc;
    argv += optind; /* the command takes the place of the program's name */
    argc -= optind;
    rc = ctl_arguments_take_command(out, argv[0]);
    if (rc < 0)
        return rc;
    ctl_arguments_build(&syntax, out, "");
    rc = ctl_arguments_take_options(out, &syntax, argc, argv);
    if (rc < 0)
        return rc;
    rc = ctl_arguments_take_words(out, argc - optind, argv + optind);
    return rc < 0 ? rc : ctl_arguments_check_count(out);
}

const char *ctl_arguments_value(const struct ctl_arguments *a, const char *name)
{
    for (unsigned i = 0; i < a->n_options; i++)
        if (strcmp(a->options[i].option->name, name) == 0)
            return a->options[i].value;
    return NULL;
}

bool ctl_arguments_has(const struct ctl_arguments *a, const char *name)
{
    return ctl_arguments_value(a, name) != NULL;
}
