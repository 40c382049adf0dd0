/*
 * config/config_acl: access rules of each listener, from its options and their files.
 *
 * Order of the rules: `deny`, then `allow`; others are denied if there is an `allow`. An
 * `access_rules` file has its own order, and ends with `all`.
 */
#include "config/config_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "option/acl_parser.h"
#include "config/config.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "net/cidr.h"

struct reading {
    struct acl_parser text;
    const struct section *section;
    struct arena *arena;
    struct diagnostics *diagnostics;
};

static const struct ini_entry *config_acl_given(const struct section *section, const char *key)
{
    const struct ini_entry *entry = section_valid_entry(section, key);

    return entry && *entry->value != '\0' ? entry : NULL;
}

/* Read the blocks in the option or, with ${files}, the blocks in files that it names. */
static int config_acl_read_list(struct reading *r, const struct ini_entry *entry, bool allow,
                                bool files)
{
    struct acl_parser_file file = {.kind = allow ? ACL_PARSER_ALLOW : ACL_PARSER_DENY,
                                   .section = r->section->source->name,
                                   .key = entry->key,
                                   .line = entry->line,
                                   .diagnostics = r->diagnostics};
    char *list = arena_text(r->arena, entry->value, strlen(entry->value));
    char problem[ACL_PARSER_PROBLEM_BYTES];
    int rc = 0;

    if (!list)
        return -ENOMEM;
    while (rc == 0 && list) {
        const char *item = option_kind_next_item(&list);
        bool is_file = strncmp(item, ACL_PARSER_FILE, strlen(ACL_PARSER_FILE)) == 0;
        const struct acl_parser_word written = {.text = item, .len = (unsigned)strlen(item)};

        if (is_file != files)
            continue;
        file.path = item + strlen(ACL_PARSER_FILE);
        rc = is_file ? acl_parser_load(&r->text, &file)
                     : acl_parser_add(&r->text, item, allow, &written, problem);
    }
    MUST(rc != -EINVAL);
    if (rc != -E2BIG)
        return rc;
    diagnostics_add(r->diagnostics, entry->line, "[%s] %s: %s", r->section->source->name,
                    entry->key, problem);
    return 0;
}

/* Dead rules [from, to) of one word; ${by}[i] is the rule that decides for rule i. */
struct dead_word {
    const unsigned *by;
    size_t from, to;
};

/* The words of the rules that decide for a dead word, each once. */
struct deciders {
    char text[ACL_PARSER_BLOCKS * 128];
    unsigned n;
};

static void config_acl_list_deciders(struct deciders *d, const struct acl_parser *t,
                                     const struct dead_word *dead)
{
    const unsigned *by = dead->by;
    size_t used = 0;

    *d = (struct deciders){.n = 0};
    for (size_t i = dead->from; i < dead->to; i++) {
        const struct acl_parser_word *w = &t->words[by[i]];
        size_t before = dead->from;

        while (before < i && t->words[by[before]].text != w->text)
            before++;
        if (before < i)
            continue;
        if (w->line > 0)
            used += (size_t)snprintf(d->text + used, sizeof(d->text) - used,
                                     "%s%s %u has '%s %.*s'", d->n > 0 ? ", " : "", "line", w->line,
                                     t->allow[by[i]] ? "allow" : "deny", (int)w->len, w->text);
        else
            used += (size_t)snprintf(d->text + used, sizeof(d->text) - used, "%s'%.*s'",
                                     d->n > 0 ? ", " : "", (int)w->len, w->text);
        d->n++;
    }
}

static void config_acl_report_dead(struct reading *r, const struct ini_entry *entry,
                                   const char *path, const struct dead_word *dead)
{
    const struct acl_parser *t = &r->text;
    const struct acl_parser_word *w = &t->words[dead->from];
    struct deciders d;

    config_acl_list_deciders(&d, t, dead);
    if (path)
        diagnostics_add_in(r->diagnostics, &(struct diagnostics_place){entry->line, path, w->line},
                           "'%s %.*s' never applies: %s (the first match decides)",
                           t->allow[dead->from] ? "allow" : "deny", (int)w->len, w->text, d.text);
    else
        diagnostics_add(r->diagnostics, entry->line,
                        "[%s] %s: '%.*s' never applies: %s %s denied (deny comes first; for "
                        "exceptions use access_rules)",
                        r->section->source->name, entry->key, (int)w->len, w->text, d.text,
                        d.n > 1 ? "are" : "is");
}

static int config_acl_check_dead(struct reading *r, const struct ini_entry *entry, const char *path)
{
    const struct acl_parser *t = &r->text;
    unsigned *by;
    int rc = acl_parser_shadowed(&by, t);

    if (rc < 0)
        return rc;
    for (size_t i = 0, end; i < t->n; i = end) {
        for (end = i + 1; end < t->n && t->words[end].text == t->words[i].text; end++)
            ;
        if (by[i] != i)
            config_acl_report_dead(r, entry, path, &(struct dead_word){by, i, end});
    }
    free(by);
    return 0;
}

static int config_acl_read_lists(struct reading *r)
{
    const struct ini_entry *deny = config_acl_given(r->section, "deny"),
                           *allow = config_acl_given(r->section, "allow");
    int rc = 0;

    if (deny && allow) {
        rc = config_acl_read_list(r, deny, false, false);
        if (rc == 0)
            rc = config_acl_read_list(r, allow, true, false);
        /* Check only rules in the options: rules in files may contradict each other. */
        if (rc == 0)
            rc = config_acl_check_dead(r, allow, NULL);
        acl_parser_free(&r->text);
    }
    for (unsigned files = 0; rc == 0 && deny && files < 2; files++)
        rc = config_acl_read_list(r, deny, false, files > 0);
    for (unsigned files = 0; rc == 0 && allow && files < 2; files++)
        rc = config_acl_read_list(r, allow, true, files > 0);
    return rc;
}

/* Is the last line for `all`? That line makes three rules. */
static bool config_acl_ends_with_all(const struct acl_parser *t)
{
    size_t last = t->n - 1;

    return t->n >= 3 && t->words[last - 2].line == t->words[last].line;
}

static int config_acl_read_rules(struct reading *r, const struct ini_entry *entry)
{
    const struct acl_parser_file file = {
        .path = entry->value,
        .kind = ACL_PARSER_BOTH,
        .section = r->section->source->name,
        .key = entry->key,
        .line = entry->line,
        .diagnostics = r->diagnostics,
    };
    struct diagnostics_place end = {.line = entry->line, .path = file.path};
    unsigned problems = diagnostics_count(r->diagnostics);
    int rc = acl_parser_load(&r->text, &file);

    if (rc < 0 || diagnostics_count(r->diagnostics) > problems)
        return rc;
    end.path_line = r->text.n > 0 ? r->text.words[r->text.n - 1].line : DIAGNOSTICS_WHOLE_FILE;
    if (!config_acl_ends_with_all(&r->text))
        diagnostics_add_in(
            r->diagnostics, &end,
            "the last rule is not for all clients (end with 'allow all' or 'deny all')");
    return config_acl_check_dead(r, entry, file.path);
}

static int config_acl_keep(struct reading *r, struct acl_conf *conf)
{
    const struct acl_parser *t = &r->text;
    struct cidr *blocks = arena_alloc(r->arena, t->n, sizeof(*blocks));
    bool *allow = arena_alloc(r->arena, t->n, sizeof(*allow));

    if (!blocks || !allow)
        return -ENOMEM;
    if (t->n > 0) {
        memcpy(blocks, t->blocks, t->n * sizeof(*blocks));
        memcpy(allow, t->allow, t->n * sizeof(*allow));
    }
    conf->blocks = blocks;
    conf->allow = allow;
    conf->n = t->n;
    return 0;
}

static void config_acl_check_section(const struct section *section, struct diagnostics *diagnostics)
{
    static const char *const lists[] = {"deny", "allow"};
    bool rules = section_has_value(section, "access_rules");

    for (size_t i = 0; rules && i < ARRAY_LEN(lists); i++)
        if (section_has_value(section, lists[i]))
            diagnostics_add(diagnostics, section_entry(section, lists[i])->line,
                            "[%s] %s: cannot be combined with access_rules (one or the other)",
                            section->source->name, lists[i]);
}

static int config_acl_read_section(const struct section *section, struct diagnostics *diagnostics)
{
    struct listener_conf *conf = section->conf;
    const struct ini_entry *rules = config_acl_given(section, "access_rules");
    struct reading r = {.section = section, .arena = section->arena, .diagnostics = diagnostics};
    int rc;

    config_acl_check_section(section, diagnostics);
    rc = rules ? config_acl_read_rules(&r, rules) : config_acl_read_lists(&r);
    if (rc == 0)
        rc = config_acl_keep(&r, &conf->access);
    if (rc == 0)
        conf->access.deny_others = config_acl_given(section, "allow") != NULL;
    acl_parser_free(&r.text);
    return rc;
}

int config_access_all(const struct config *config, struct diagnostics *diagnostics)
{
    const struct config_memory *m = config->memory;
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_LISTEN)
            rc = config_acl_read_section(&m->sections[i], diagnostics);
    return rc;
}
