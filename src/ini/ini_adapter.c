/*
 * iniparser opens only paths, so it gets the path of a memfd. Of its getters only
 * iniparser_getstring() is safe. Others crash if the name is that of a section (CVE-2023-33461),
 * and read "4x" as 4.
 *
 * Without /proc a memfd has no path. Then there are no parts, and values are as ini_scan reads
 * them: where iniparser reads another value, the file is refused anyway.
 */
#include "ini/ini_adapter.h"

#include <errno.h>
#include <iniparser/iniparser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ini/diagnostics.h"

#define ENTRY_NAME_BYTES (3 * INI_NAME_BYTES + sizeof(" :"))

#define PART_ENTRIES 1024

struct ini_part {
    dictionary *dictionary;
    unsigned last_line;
    size_t n_names; /* number of names that iniparser must find */
};

struct ini_values {
    unsigned n_parts;
    struct ini_part *parts;
};

struct cutter {
    const struct ini_text *text;
    size_t at;            /* start of the next line */
    unsigned line;        /* number of the next line */
    struct ini_text head; /* current section's header, or empty */
    size_t n_entries;
    size_t n_names;
};

static int ini_adapter_write_all(int fd, const struct ini_text *text)
{
    size_t done = 0;

    while (done < text->len) {
        ssize_t n = write(fd, text->bytes + done, text->len - done);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            done += (size_t)n;
    }
    return 0;
}

/* Silence iniparser: ini_scan reports problems. */
static int __attribute__((format(printf, 1, 2))) ini_adapter_ignore_error(const char *format, ...)
{
    (void)format;
    return 0;
}

static int ini_adapter_load_dictionary(dictionary **out, const struct ini_text *head,
                                       const struct ini_text *body)
{
    char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
    int fd = memfd_create("reactord.ini", MFD_CLOEXEC);
    int rc;

    if (fd < 0)
        return -errno;
    rc = ini_adapter_write_all(fd, head);
    if (rc == 0)
        rc = ini_adapter_write_all(fd, body);
    if (rc == 0) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        iniparser_set_error_callback(ini_adapter_ignore_error);
        *out = iniparser_load(path);
        iniparser_set_error_callback(NULL);
        if (*out == NULL)
            rc = -EIO;
    }
    close(fd);
    return rc;
}

static struct ini_text ini_adapter_cutter_peek(const struct cutter *c)
{
    size_t left = c->text->len - c->at;
    char *begin = c->text->bytes + c->at;
    const char *end = left > 0 ? memchr(begin, '\n', left) : NULL;

    return (struct ini_text){begin, end ? (size_t)(end - begin) + 1 : left};
}

/* Return the first byte of ${line} after blanks; '\n': a blank line. */
static char ini_adapter_first_byte(const struct ini_text *line)
{
    size_t i = 0;

    while (i < line->len && (line->bytes[i] == ' ' || line->bytes[i] == '\t'))
        i++;
    return i < line->len ? line->bytes[i] : '\n';
}

static bool ini_adapter_is_defaults(const struct ini_text *line)
{
    const char *end = line->bytes + line->len;
    const char *name = (const char *)memchr(line->bytes, '[', line->len) + 1;
    size_t len = strlen(INI_DEFAULTS);

    while (name < end && (*name == ' ' || *name == '\t'))
        name++;
    return (size_t)(end - name) >= len && strncasecmp(name, INI_DEFAULTS, len) == 0;
}

static bool ini_adapter_cutter_add_line(struct cutter *c)
{
    struct ini_text line = ini_adapter_cutter_peek(c);
    char first = ini_adapter_first_byte(&line);
    bool is_head = first == '[';
    bool is_entry = !is_head && first != '#' && first != ';' && first != '\n';

    if ((is_head || is_entry) && c->n_entries >= PART_ENTRIES)
        return false;
    if (is_head && c->n_names > 0 && ini_adapter_is_defaults(&line))
        return false; /* as it may be there twice */
    if (is_head)
        c->head = line;
    c->n_entries += is_entry;
    c->n_names += is_head || is_entry;
    c->at += line.len;
    c->line++;
    return true;
}

/* Load a part of the file, up to ${c}: section header ${head}, then ${body}. */
static int ini_adapter_add_part(struct ini_values *values, const struct cutter *c,
                                const struct ini_text *head, const struct ini_text *body)
{
    struct ini_part *parts = realloc(values->parts, (values->n_parts + 1) * sizeof(*values->parts));
    struct ini_part *part;
    int rc;

    if (!parts)
        return -ENOMEM;
    values->parts = parts;
    part = &parts[values->n_parts];
    *part = (struct ini_part){.last_line = c->line - 1, .n_names = c->n_names};
    rc = ini_adapter_load_dictionary(&part->dictionary, head, body);
    if (rc == 0)
        values->n_parts++;
    return rc;
}

static int ini_adapter_load_parts(struct ini_values *values, struct cutter *c)
{
    int rc = 0;

    do {
        /* a part that begins with a section needs no header */
        struct ini_text head = c->head, body = ini_adapter_cutter_peek(c);
        size_t begin = c->at;

        if (ini_adapter_first_byte(&body) == '[')
            head.len = 0;
        c->n_entries = 0;
        c->n_names = head.len > 0;
        while (c->at < c->text->len && ini_adapter_cutter_add_line(c))
            ;
        body.len = c->at - begin;
        rc = ini_adapter_add_part(values, c, &head, &body);
    } while (rc == 0 && c->at < c->text->len);
    return rc;
}

int ini_adapter_load(struct ini_values **out, const struct ini_text *text)
{
    struct cutter c = {.text = text, .line = 1};
    struct ini_values *values = calloc(1, sizeof(*values));
    int rc;

    if (!values)
        return -ENOMEM;
    rc = access("/proc/self/fd", X_OK) == 0 ? ini_adapter_load_parts(values, &c) : 0;
    if (rc < 0) {
        ini_adapter_free(values);
        return rc;
    }
    *out = values;
    return 0;
}

void ini_adapter_free(struct ini_values *values)
{
    if (!values)
        return;
    for (unsigned i = 0; i < values->n_parts; i++)
        iniparser_freedict(values->parts[i].dictionary);
    free(values->parts);
    free(values);
}

static const struct ini_part *ini_adapter_part_of(const struct ini_values *values, unsigned line)
{
    unsigned low = 0, high = values->n_parts - 1;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (values->parts[middle].last_line < line)
            low = middle + 1;
        else
            high = middle;
    }
    return &values->parts[low];
}

/*
 * Is ${value} what iniparser 4.2 reads from the quoted ${text}? There a backslash escapes the next
 * byte, even the closing quote; in reactord a backslash is an ordinary byte.
 */
static bool ini_adapter_is_unescaped(const char *value, const char *text)
{
    for (; *text != '\0'; text++, value++) {
        if (*text == '\\' && *++text == '\0')
            return (*value == '"' || *value == '\'') && value[1] == '\0';
        if (*value != *text)
            return false;
    }
    return *value == '\0';
}

static bool ini_adapter_take_value(struct ini_entry *entry, const char *section, dictionary *d)
{
    char name[ENTRY_NAME_BYTES];
    const char *value;

    snprintf(name, sizeof(name), "%s:%s", section, entry->key);
    value = iniparser_getstring(d, name, NULL);
    if (value && strcmp(value, entry->value) != 0 &&
        ini_adapter_is_unescaped(value, entry->value) && dictionary_set(d, name, entry->value) == 0)
        value = iniparser_getstring(d, name, NULL);
    if (!value || strcmp(value, entry->value) != 0)
        return false;
    entry->value = value;
    return true;
}

static void ini_adapter_take_section(struct ini_values *values, struct ini_section *section,
                                     struct diagnostics *diagnostics)
{
    for (unsigned i = 0; i < section->n_entries; i++) {
        struct ini_entry *entry = &section->entries[i];

        if (entry->refused ||
            ini_adapter_take_value(entry, section->name,
                                   ini_adapter_part_of(values, entry->line)->dictionary))
            continue;
        entry->refused = true;
        diagnostics_add(diagnostics, entry->line, "[%s] %s: iniparser reads another value than %s",
                        section->name, entry->key, QUOTE_TEXT(entry->value));
    }
}

void ini_adapter_take(struct ini_values *values, struct ini *ini, struct diagnostics *diagnostics)
{
    for (unsigned i = 0; values->n_parts > 0 && i < ini->n_sections; i++)
        ini_adapter_take_section(values, &ini->sections[i], diagnostics);
    for (unsigned i = 0; i < values->n_parts; i++) {
        const struct ini_part *part = &values->parts[i];

        if ((size_t)part->dictionary->n != part->n_names)
            diagnostics_add(diagnostics, DIAGNOSTICS_WHOLE_FILE,
                            "iniparser reads %d names up to line %u where there are %zu",
                            part->dictionary->n, part->last_line, part->n_names);
    }
}
