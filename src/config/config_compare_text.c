/* config/config_compare_text: changes as text, for logs and errors. See config_compare.h. */
#include "config/config_compare.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ini/diagnostics.h"

#define BLANKS " \t"

/* Longer values are cut: shown from VALUE_BEFORE_BYTES before the first difference. */
#define VALUE_SHOWN_BYTES  200
#define VALUE_BEFORE_BYTES 20

struct value {
    char text[VALUE_SHOWN_BYTES + sizeof("......")];
};

static const char *config_compare_cut(struct value *out, const char *text, size_t skip)
{
    size_t len = strlen(text + skip);

    snprintf(out->text, sizeof(out->text), "%s%.*s%s", skip > 0 ? "..." : "", VALUE_SHOWN_BYTES,
             text + skip, len > VALUE_SHOWN_BYTES ? "..." : "");
    return *text == '\0' ? "empty" : out->text;
}

/* Return the number of equal bytes to leave out at the front; cut after a blank if one is near. */
static size_t config_compare_skip(const char *a, const char *b)
{
    size_t same = 0, skip;

    if (strlen(a) <= VALUE_SHOWN_BYTES && strlen(b) <= VALUE_SHOWN_BYTES)
        return 0;
    while (a[same] != '\0' && a[same] == b[same])
        same++;
    if (same <= VALUE_BEFORE_BYTES)
        return 0;
    for (skip = same - VALUE_BEFORE_BYTES; skip < same; skip++)
        if (a[skip] == ' ')
            return skip + 1;
    return same - VALUE_BEFORE_BYTES;
}

static bool config_compare_has_word(const char *text, const char *word, size_t len)
{
    for (const char *at = text; *(at += strspn(at, BLANKS)) != '\0'; at += strcspn(at, BLANKS))
        if (strcspn(at, BLANKS) == len && memcmp(at, word, len) == 0)
            return true;
    return false;
}

/* Return the words of ${text} that ${other} does not have; "": no such words, or too long. */
static const char *config_compare_words(struct value *out, const char *text, const char *other)
{
    size_t len, used = 0;

    out->text[0] = '\0';
    for (const char *at = text; *(at += strspn(at, BLANKS)) != '\0'; at += len) {
        len = strcspn(at, BLANKS);
        if (config_compare_has_word(other, at, len))
            continue;
        if (used + len + 1 >= sizeof(out->text))
            return "";
        used += (size_t)sprintf(out->text + used, "%s%.*s", used > 0 ? " " : "", (int)len, at);
    }
    return out->text;
}

/*
 * Write both values; for a server only the words that differ, as `weight=1 -> weight=2`, if each
 * value has such words.
 */
static void config_compare_write_values(char *out, size_t size,
                                        const struct config_compare_change *c)
{
    const struct option *o = option_find(c->section, c->key);
    size_t skip = config_compare_skip(c->old_text, c->new_text);
    struct value from, to;
    const char *before = "", *after = "";

    if ((o->flags & OPTION_FAMILY) != 0) {
        before = config_compare_words(&from, c->old_text, c->new_text);
        after = config_compare_words(&to, c->new_text, c->old_text);
    }
    if (*before == '\0' || *after == '\0') {
        before = config_compare_cut(&from, c->old_text, skip);
        after = config_compare_cut(&to, c->new_text, skip);
    }
    snprintf(out, size, "%s -> %s", before, after);
}

static const char *config_compare_secret_text(enum config_compare_kind kind)
{
    switch (kind) {
    case CONFIG_COMPARE_ADDED: return "added";
    case CONFIG_COMPARE_REMOVED: return "removed";
    default: return "changed";
    }
}

static void config_compare_write_option(char *out, size_t size,
                                        const struct config_compare_change *c)
{
    struct value v;

    if ((option_find(c->section, c->key)->flags & OPTION_SECRET) != 0) {
        snprintf(out, size, "%s", config_compare_secret_text(c->kind));
        return;
    }
    switch (c->kind) {
    case CONFIG_COMPARE_ADDED:
        snprintf(out, size, "added: %s", config_compare_cut(&v, c->new_text, 0));
        break;
    case CONFIG_COMPARE_REMOVED:
        snprintf(out, size, "removed: %s", config_compare_cut(&v, c->old_text, 0));
        break;
    case CONFIG_COMPARE_CHANGED: config_compare_write_values(out, size, c); break;
    case CONFIG_COMPARE_FILES:
    case CONFIG_COMPARE_INTERFACE:
    case CONFIG_COMPARE_ORDER: MUST(!"an option"); break;
    case CONFIG_COMPARE_CONTENT: snprintf(out, size, "%s", c->content); break;
    case CONFIG_COMPARE_RULES:
        snprintf(out, size, "the rules in the file have changed: %zu -> %zu", c->old_rules,
                 c->new_rules);
        break;
    }
}

static const char *config_compare_section_text(enum config_compare_kind kind)
{
    if (kind == CONFIG_COMPARE_FILES)
        return "certificates, keys or CAs in the files have changed";
    if (kind == CONFIG_COMPARE_INTERFACE)
        return "the interface of an address was made anew";
    if (kind == CONFIG_COMPARE_ORDER)
        return "the order of its routes has changed";
    return kind == CONFIG_COMPARE_ADDED ? "added" : "removed";
}

const char *config_compare_text(struct config_compare_text *out,
                                const struct config_compare_change *change)
{
    const char *name = change->name ? change->name : "";
    char what[2 * sizeof(struct value) + 32];
    int n;

    if (change->key)
        config_compare_write_option(what, sizeof(what), change);
    else
        snprintf(what, sizeof(what), "%s", config_compare_section_text(change->kind));
    n = snprintf(out->text, sizeof(out->text), "[%s%s%s] %s%s%s (%s)",
                 option_section_name(change->section), *name ? " " : "", name,
                 change->key ? change->key : "", change->key ? ": " : "", what,
                 option_applies_text(change->applies));
    MUST(n > 0 && (size_t)n < sizeof(out->text));
    return out->text;
}

void config_compare_refuse(const struct config_compare *cmp, struct diagnostics *diagnostics)
{
    for (size_t i = 0; i < cmp->n; i++) {
        const struct config_compare_change *c = &cmp->list[i];
        char values[2 * sizeof(struct value) + 32];

        if (c->applies != OPTION_UPGRADE)
            continue;
        config_compare_write_option(values, sizeof(values), c);
        diagnostics_add(diagnostics, c->line,
                        "[%s%s%s] %s: %s needs a new process (upgrade, restart, or keep the value)",
                        option_section_name(c->section), c->name ? " " : "", c->name ? c->name : "",
                        c->key, values);
    }
}
