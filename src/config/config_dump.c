/* config/config_dump: see config_dump() in config.h. */
#include "config/config.h"

#include <errno.h>
#include <string.h>

#include "config/config_checks.h"
#include "config/config_memory.h"
#include "option/option_need.h"

/* Bytes that need no quotes, except for a blank at the start or end of a value. */
static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "_.,:/@*%[]=+-> ";

/* Longer paths are cut at the front. */
#define PATH_SHOWN_BYTES 256

struct dump {
    FILE *out;
    bool origins;
    const struct section *section;
};

/* Format `key = value`; if it were too long for a configuration, the shortest line. */
static void config_dump_format(char line[INI_LINE_BYTES + 2], const char *key, const char *value)
{
    size_t len = strlen(value);
    const char *quote = "", *blank = " ";

    if (value[strspn(value, plain)] != '\0' ||
        (len > 0 && (value[0] == ' ' || value[len - 1] == ' ')))
        quote = strchr(value, '"') ? "'" : "\"";
    if (strchr(value, *quote) && *quote != '\0')
        quote = ""; /* with both kinds of quotes it was read without any around it */
    if (strlen(key) + strlen(" = ") + 2 * strlen(quote) + len > INI_LINE_BYTES) {
        blank = "";
        if ((!strpbrk(value, "\"'#;") && value[0] != ' ' && value[len - 1] != ' ') ||
            strlen(key) + strlen("=") + 2 * strlen(quote) + len > INI_LINE_BYTES)
            quote = "";
    }
    snprintf(line, INI_LINE_BYTES + 2, "%s%s=%s%s%s%s", key, blank, len > 0 ? blank : "", quote,
             value, quote);
}

/* Format the comment on the origin of ${entry}; NULL: it is not in a file. */
static void config_dump_format_origin(char text[INI_LINE_BYTES], const struct dump *d,
                                      const struct ini_entry *entry)
{
    size_t len = entry ? strlen(entry->path) : 0;
    size_t skip = len > PATH_SHOWN_BYTES ? len - PATH_SHOWN_BYTES : 0;

    if (!entry)
        snprintf(text, INI_LINE_BYTES, "# default");
    else if (entry->is_default)
        snprintf(text, INI_LINE_BYTES, "# %s%s:%u [" INI_DEFAULTS "%s]", skip > 0 ? "..." : "",
                 entry->path + skip, entry->path_line, option_section_name(d->section->kind));
    else
        snprintf(text, INI_LINE_BYTES, "# %s%s:%u", skip > 0 ? "..." : "", entry->path + skip,
                 entry->path_line);
    for (char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
}

static bool config_dump_ends_in_backslash(const char *value)
{
    size_t len = strlen(value);

    return len > 0 && value[len - 1] == '\\';
}

/*
 * Write a line with the origin behind it, or above it if both do not fit in a line, or the value
 * ends in a backslash: iniparser 4.2 takes that as an escape of the closing quote.
 */
static void config_dump_write_value(const struct dump *d, const char *key, const char *value,
                                    const struct ini_entry *entry)
{
    char line[INI_LINE_BYTES + 2], origin[INI_LINE_BYTES];

    config_dump_format(line, key, value);
    if (!d->origins) {
        fprintf(d->out, "%s\n", line);
        return;
    }
    config_dump_format_origin(origin, d, entry);
    if (strlen(line) + 1 + strlen(origin) <= INI_LINE_BYTES &&
        !config_dump_ends_in_backslash(value))
        fprintf(d->out, "%s %s\n", line, origin);
    else
        fprintf(d->out, "%s\n%s\n", origin, line);
}

static void config_dump_write_family(const struct dump *d, const struct option *o)
{
    const struct ini_section *source = d->section->source;

    for (unsigned i = 0; source != NULL && i < source->n_entries; i++) {
        const struct ini_entry *entry = &source->entries[i];

        if (option_matches(o, entry->key))
            config_dump_write_value(d, entry->key, entry->value, entry);
    }
}

/* Write the steps of a named check as comments. */
static void config_dump_write_steps(const struct dump *d)
{
    const struct upstream_conf *up = d->section->conf;
    const struct dump steps = {.out = d->out, .section = d->section};
    char key[sizeof("#check_step.NNNNNNNNNN")], text[INI_VALUE_BYTES];

    for (unsigned i = 0; config_checks_step(text, &up->checks, i); i++) {
        snprintf(key, sizeof(key), "#check_step.%u", i + 1);
        config_dump_write_value(&steps, key, text, NULL);
    }
}

static void config_dump_write_option(const struct dump *d, const struct option *o)
{
    const struct ini_entry *entry;

    if ((o->flags & OPTION_FAMILY) != 0) {
        config_dump_write_family(d, o);
        if (d->section->kind == OPTION_UPSTREAM && option_matches(o, "check_step.1"))
            config_dump_write_steps(d);
        return;
    }
    entry = section_entry(d->section, o->key);
    if (option_need_missing(o->need, d->section)) {
        char key[INI_NAME_BYTES + 2];

        /* Even a comment must fit in a line. */
        if (entry && strlen(entry->value) > INI_LINE_BYTES - INI_NAME_BYTES)
            return;
        snprintf(key, sizeof(key), "#%s", o->key);
        config_dump_write_value(d, key, entry ? entry->value : o->fallback, entry);
        return;
    }
    config_dump_write_value(d, o->key, entry ? entry->value : o->fallback, entry);
}

static int config_dump_all(const struct config *config, struct dump *d)
{
    const struct config_memory *m = config->memory;

    for (unsigned i = 0; i < m->n_sections; i++) {
        const struct section *section = &m->sections[i];
        const struct option *o;

        d->section = section;
        fprintf(d->out, "%s[%s%s%s]\n", i > 0 ? "\n" : "", option_section_name(section->kind),
                section->name ? " " : "", section->name ? section->name : "");
        for (unsigned j = 0; (o = option_row(section->kind, j)) != NULL; j++)
            config_dump_write_option(d, o);
    }
    return fflush(d->out) != 0 || ferror(d->out) ? -EIO : 0;
}

int config_dump(const struct config *config, FILE *out)
{
    return config_dump_all(config, &(struct dump){.out = out});
}

int config_dump_origins(const struct config *config, FILE *out)
{
    return config_dump_all(config, &(struct dump){.out = out, .origins = true});
}
