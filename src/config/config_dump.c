/* config/config_dump: see config_dump() in config.h. */
#include "config/config.h"

#include <errno.h>
#include <string.h>

#include "config/config_checks.h"
#include "config/config_memory.h"
#include "config/option_need.h"

/* Bytes that need no quotes, except for a blank at the start or end of a value. */
static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "_.,:/@*%[]=+-> ";

/* Write a line; if it were too long for a configuration, write the shortest. */
static void config_dump_write_value(FILE *out, const char *key, const char *value)
{
    size_t len = strlen(value);
    const char *quote = "";

    if (value[strspn(value, plain)] != '\0' ||
        (len > 0 && (value[0] == ' ' || value[len - 1] == ' ')))
        quote = strchr(value, '"') ? "'" : "\""; /* a value never has both kinds of quotes */
    if (strlen(key) + strlen(" = ") + 2 * strlen(quote) + len <= INI_LINE_BYTES)
        fprintf(out, "%s =%s%s%s%s\n", key, len > 0 ? " " : "", quote, value, quote);
    else if (strpbrk(value, "\"'#;") || value[0] == ' ' || value[len - 1] == ' ')
        fprintf(out, "%s=%s%s%s\n", key, quote, value, quote);
    else
        fprintf(out, "%s=%s\n", key, value);
}

static void config_dump_write_family(FILE *out, const struct option *o,
                                     const struct ini_section *source)
{
    for (unsigned i = 0; source != NULL && i < source->n_entries; i++) {
        const struct ini_entry *entry = &source->entries[i];

        if (option_matches(o, entry->key))
            config_dump_write_value(out, entry->key, entry->value);
    }
}

/* Write the steps of a named check as comments. */
static void config_dump_write_steps(FILE *out, const struct config_section *section)
{
    const struct upstream_conf *up = section->conf;
    char key[sizeof("#check_step.NNNNNNNNNN")], text[INI_VALUE_BYTES];

    for (unsigned i = 0; config_checks_step(text, &up->checks, i); i++) {
        snprintf(key, sizeof(key), "#check_step.%u", i + 1);
        config_dump_write_value(out, key, text);
    }
}

static void config_dump_write_option(FILE *out, const struct option *o,
                                     const struct config_section *section)
{
    const struct ini_entry *entry;

    if ((o->flags & OPTION_FAMILY) != 0) {
        config_dump_write_family(out, o, section->source);
        if (section->kind == OPTION_UPSTREAM && option_matches(o, "check_step.1"))
            config_dump_write_steps(out, section);
        return;
    }
    entry = config_section_entry(section, o->key);
    if (option_need_missing(o->need, section)) {
        /* Even a comment must fit in a line. */
        if (entry && strlen(entry->value) > INI_LINE_BYTES - INI_NAME_BYTES)
            return;
        fputc('#', out);
    }
    config_dump_write_value(out, o->key, entry ? entry->value : o->fallback);
}

int config_dump(const struct config *config, FILE *out)
{
    const struct config_memory *m = config->memory;
    for (unsigned i = 0; i < m->n_sections; i++) {
        const struct config_section *section = &m->sections[i];
        const struct option *o;

        fprintf(out, "%s[%s%s%s]\n", i > 0 ? "\n" : "", option_section_name(section->kind),
                section->name ? " " : "", section->name ? section->name : "");
        for (unsigned j = 0; (o = option_row(section->kind, j)) != NULL; j++)
            config_dump_write_option(out, o, section);
    }
    return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
