#include "ini/ini_scan.h"

#include <ctype.h>
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "ini/diagnostics.h"
#include "ini/foreign_lines.h"
#include "ini/foreign_words.h"
#include "ini/ini_types.h"
#include "ini/ini_value.h"

#define BLANKS     " \t"
#define COMMENT    "#;"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

struct scan {
    struct ini *ini;
    struct arena *arena;
    struct diagnostics *diagnostics;
    unsigned line;
    unsigned n_entries;
    struct ini_entry *entries;
    struct ini_section *section; /* NULL: no section yet, or a refused one */
    bool before_first;
    unsigned depth, floor;  /* see struct ini_section */
    void *sections_by_name; /* tsearch(3) tree */
    void *entries_by_key;   /* tree for `section` */
    int rc;
};

enum verdict { KEEP, DROP };

static bool ini_scan_is_control(unsigned char c)
{
    return (c < ' ' && c != '\t' && c != '\n') || c == 0x7f;
}

#define TELL(diagnostics, ...)                         \
    do {                                               \
        if ((diagnostics))                             \
            diagnostics_add(diagnostics, __VA_ARGS__); \
    } while (0)

int ini_scan_is_text(const struct ini_text *text, struct diagnostics *diagnostics)
{
    unsigned line = 1;

    if (text->len >= 3 && memcmp(text->bytes, "\xef\xbb\xbf", 3) == 0) {
        TELL(diagnostics, line, "the file begins with a byte order mark (save it without)");
        return -EINVAL;
    }
    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->bytes[i];

        if (c == '\n')
            line++;
        if (!ini_scan_is_control(c))
            continue;
        if (c == '\r' && i + 1 < text->len && text->bytes[i + 1] == '\n')
            TELL(diagnostics, line,
                 "the line ends in CR LF (lines end in LF; sed -i 's/\\r$//' converts)");
        else
            TELL(diagnostics, line, "byte \\x%02x: this is not a text file", c);
        return -EINVAL;
    }
    return 0;
}

static enum verdict ini_scan_out_of_memory(struct scan *s)
{
    s->rc = -ENOMEM;
    return DROP;
}

/* Copy in lower case, as iniparser stores names; NULL: no memory. */
static char *ini_scan_lower(struct scan *s, const char *text, size_t len)
{
    char *copy = arena_text(s->arena, text, len);

    for (char *p = copy; p != NULL && *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    return copy;
}

static int ini_scan_compare_sections(const void *a, const void *b)
{
    return strcmp(((const struct ini_section *)a)->name, ((const struct ini_section *)b)->name);
}

static int ini_scan_compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct ini_entry *)a)->key, ((const struct ini_entry *)b)->key);
}

static void ini_scan_keep_node(void *node)
{
    (void)node; /* the arena owns it */
}

static const char *ini_scan_section_problem(const char *name)
{
    size_t kind = strspn(name, NAME_CHARS);
    size_t rest = name[kind] == ' ' ? strspn(name + kind + 1, NAME_CHARS) : 0;

    if (*name == '\0')
        return "a section without a name";
    if (strlen(name) > 2 * INI_NAME_BYTES)
        return "the section's name is too long";
    if (strchr(name, ':'))
        return "a ':' in a section's name";
    if (name[kind] == '\0' || (kind > 0 && rest > 0 && name[kind + 1 + rest] == '\0'))
        return NULL;
    return "not the name of a section";
}

static enum verdict ini_scan_refuse_section(struct scan *s)
{
    s->section = NULL;
    s->ini->n_refused++;
    return DROP;
}

static enum verdict ini_scan_open_section(struct scan *s, const char *name)
{
    struct ini_section *section = &s->ini->sections[s->ini->n_sections];
    struct ini_section **known;
    bool is_defaults;

    if (s->ini->n_sections == INI_MAX_SECTIONS) {
        diagnostics_add(s->diagnostics, s->line, "too many sections (at most %u)",
                        s->ini->n_sections);
        s->rc = -EINVAL;
        return DROP;
    }
    section->name = ini_scan_lower(s, name, strlen(name));
    section->line = s->line;
    section->depth = s->depth;
    section->floor = s->floor;
    if (!section->name)
        return ini_scan_out_of_memory(s);
    is_defaults = strncmp(section->name, INI_DEFAULTS, strlen(INI_DEFAULTS)) == 0;
    known =
        is_defaults ? &section : tsearch(section, &s->sections_by_name, ini_scan_compare_sections);
    if (!known)
        return ini_scan_out_of_memory(s);
    if (*known != section) {
        diagnostics_add(s->diagnostics, s->line, "[%s] is defined twice (first on %s)",
                        section->name, DIAGNOSTICS_LINE(s->diagnostics, (*known)->line));
        return ini_scan_refuse_section(s);
    }
    section->entries = s->entries + s->n_entries;
    s->ini->n_sections++;
    s->section = section;
    s->floor = s->depth;
    return KEEP;
}

static enum verdict ini_scan_section(struct scan *s, char *line)
{
    char *name = line + 1;
    char *end = strchr(name, ']');
    struct diagnostics_quote shown;
    const char *problem;
    char *rest;

    diagnostics_quote_text(&shown, line);
    s->before_first = false;
    tdestroy(s->entries_by_key, ini_scan_keep_node);
    s->entries_by_key = NULL;
    if (!end) {
        diagnostics_add(s->diagnostics, s->line, "%s has no closing ']'", shown.text);
        return ini_scan_refuse_section(s);
    }
    *end = '\0';
    rest = end + 1 + strspn(end + 1, BLANKS);
    name = ini_value_strip(name);
    if (*rest != '\0') {
        diagnostics_add(s->diagnostics, s->line,
                        "%s follows the closing ']' (nothing may, not even a comment)",
                        QUOTE_TEXT(rest));
        return ini_scan_refuse_section(s);
    }
    problem = ini_scan_section_problem(name);
    if (problem) {
        diagnostics_add(
            s->diagnostics, s->line,
            "%s: %s ([KIND] or [KIND NAME], one blank between, of letters, digits, '_', "
            "'.' and '-')",
            shown.text, problem);
        return ini_scan_refuse_section(s);
    }
    return ini_scan_open_section(s, name);
}

static enum verdict ini_scan_value_of(struct scan *s, struct ini_entry *entry, char *value)
{
    const char *problem;

    entry->value = "";
    problem = ini_value_read(&entry->value, value);
    if (problem) {
        diagnostics_add(s->diagnostics, s->line, "[%s] %s: %s", s->section->name, entry->key,
                        problem);
        entry->value = "";
        entry->refused = true;
        return DROP;
    }
    entry->value = arena_text(s->arena, entry->value, strlen(entry->value));
    return !entry->value ? ini_scan_out_of_memory(s) : KEEP;
}

static enum verdict ini_scan_add_entry(struct scan *s, const char *key, char *value)
{
    struct ini_entry *entry = &s->entries[s->n_entries];
    struct ini_entry **known;

    if (s->n_entries == INI_MAX_ENTRIES) {
        diagnostics_add(s->diagnostics, s->line, "too many lines 'key = value' (at most %u)",
                        s->n_entries);
        s->rc = -EINVAL;
        return DROP;
    }
    entry->key = ini_scan_lower(s, key, strlen(key));
    entry->line = s->line;
    if (!entry->key)
        return ini_scan_out_of_memory(s);
    known = tsearch(entry, &s->entries_by_key, ini_scan_compare_entries);
    if (!known)
        return ini_scan_out_of_memory(s);
    if (*known != entry) {
        diagnostics_add(s->diagnostics, s->line, "[%s] %s: is set twice (first on %s)",
                        s->section->name, entry->key,
                        DIAGNOSTICS_LINE(s->diagnostics, (*known)->line));
        return DROP;
    }
    s->n_entries++;
    s->section->n_entries++;
    return ini_scan_value_of(s, entry, value);
}

static const char *ini_scan_key_problem(const char *key)
{
    if (*key == '\0')
        return "nothing before the '='";
    if (strlen(key) > INI_NAME_BYTES)
        return "a key that is too long";
    if (strchr(key, ':'))
        return "a ':' in a key";
    if (key[strspn(key, NAME_CHARS)] != '\0')
        return "not a key";
    return NULL;
}

/* Return a hint if ${text} is a line of another program, such as `timeout connect`, else NULL. */
static const char *ini_scan_hint(const struct scan *s, struct foreign_words_hint *words,
                                 const char *text)
{
    const char *section = s->section ? s->section->name : "";
    const char *hint = foreign_lines_hint(words, section, text);

    if (hint || foreign_lines_is_nginx(text))
        diagnostics_set_foreign(s->diagnostics);
    return hint;
}

static enum verdict ini_scan_refuse_line(struct scan *s, const char *text, const char *problem,
                                         const char *allowed)
{
    struct foreign_words_hint words;
    const char *hint = ini_scan_hint(s, &words, text);

    if (hint)
        diagnostics_add(s->diagnostics, s->line, "%s: %s (%s; %s)", QUOTE_TEXT(text), problem,
                        allowed, hint);
    else
        diagnostics_add(s->diagnostics, s->line, "%s: %s (%s)", QUOTE_TEXT(text), problem, allowed);
    return DROP;
}

static enum verdict ini_scan_entry(struct scan *s, char *line)
{
    char *equals = strchr(line, '=');
    const char *problem;
    char *key;

    if (!equals)
        return ini_scan_refuse_line(s, line, "no '='", "key = value");
    *equals = '\0';
    key = ini_value_strip(line);
    problem = ini_scan_key_problem(key);
    if (problem)
        return ini_scan_refuse_line(
            s, key, problem, "key = value, where a key is letters, digits, '_', '.' and '-'");
    if (strcasecmp(key, "include") == 0) {
        diagnostics_add(s->diagnostics, s->line,
                        "include: must come before the first section of a file, except "
                        "[defaults KIND]");
        return DROP;
    }
    if (s->before_first) {
        diagnostics_add(s->diagnostics, s->line,
                        "%s is in no section (a line [KIND] or [KIND NAME] first)",
                        QUOTE_TEXT(key));
        return DROP;
    }
    if (!s->section)
        return DROP; /* the section was refused */
    return ini_scan_add_entry(s, key, equals + 1);
}

static enum verdict ini_scan_line(struct scan *s, const char *bytes, size_t len)
{
    char copy[INI_LINE_BYTES + 1];
    char *line;

    if (len > INI_LINE_BYTES) {
        diagnostics_add(s->diagnostics, s->line, "the line has %zu characters (at most %d)", len,
                        INI_LINE_BYTES);
        return DROP;
    }
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    line = ini_value_strip(copy);
    if (*line == '\0')
        return KEEP;
    if (line[strlen(line) - 1] == '\\') {
        /* refused even in a comment, because iniparser would join the next line */
        diagnostics_add(s->diagnostics, s->line,
                        "the line ends in a backslash (a line is not continued)");
        return DROP;
    }
    if (strchr(COMMENT, *line))
        return KEEP;
    return *line == '[' ? ini_scan_section(s, line) : ini_scan_entry(s, line);
}

/* There are at most as many sections as '[', and as many entries as '='. */
static int ini_scan_reserve(struct scan *s, const struct ini_text *text)
{
    size_t n_sections = 0, n_entries = 0;

    for (size_t i = 0; i < text->len; i++) {
        n_sections += text->bytes[i] == '[';
        n_entries += text->bytes[i] == '=';
    }
    if (n_sections > INI_MAX_SECTIONS)
        n_sections = INI_MAX_SECTIONS;
    if (n_entries > INI_MAX_ENTRIES)
        n_entries = INI_MAX_ENTRIES;
    s->ini->sections = arena_alloc(s->arena, n_sections, sizeof(*s->ini->sections));
    s->entries = arena_alloc(s->arena, n_entries, sizeof(*s->entries));
    return !s->ini->sections || !s->entries ? -ENOMEM : 0;
}

/* Begin a file, or go on with it: the last section of the file before has ended. */
static void ini_scan_begin_file(struct scan *s, const struct diagnostics_source *source)
{
    unsigned floor = source->path_line == 1 ? source->depth : source->depth + 1;

    s->depth = source->depth + 1;
    s->floor = floor < s->floor ? floor : s->floor;
    s->before_first = true;
    s->section = NULL;
    tdestroy(s->entries_by_key, ini_scan_keep_node);
    s->entries_by_key = NULL;
}

int ini_scan_lines(struct ini *ini, struct ini_text *text, struct arena *arena,
                   struct diagnostics *diagnostics)
{
    struct scan s = {.ini = ini, .arena = arena, .diagnostics = diagnostics, .before_first = true};
    const char *next = text->bytes, *end = text->bytes + text->len;
    const struct diagnostics_source *source;
    size_t kept = 0;

    s.rc = ini_scan_reserve(&s, text);
    while (next < end && s.rc == 0) {
        const char *newline = memchr(next, '\n', (size_t)(end - next));
        size_t len = (size_t)((newline ? newline : end) - next);

        s.line++;
        source = diagnostics_begun_source(diagnostics, s.line);
        if (source)
            ini_scan_begin_file(&s, source);
        if (ini_scan_line(&s, next, len) == KEEP) {
            memmove(text->bytes + kept, next, len);
            kept += len;
        }
        if (newline)
            text->bytes[kept++] = '\n';
        next += len + (newline != NULL);
    }
    text->len = kept;
    tdestroy(s.entries_by_key, ini_scan_keep_node);
    tdestroy(s.sections_by_name, ini_scan_keep_node);
    return s.rc;
}
