/*
 * config/config_compare: differences of two configurations, for a reload.
 *
 * Parsed values are compared (60s equals 1m); lists and the like are compared as texts.
 */
#ifndef CONFIG_CONFIG_COMPARE_H
#define CONFIG_CONFIG_COMPARE_H

#include <stddef.h>

#include "base/must.h"
#include "option/option.h"

struct config;
struct diagnostics;

enum config_compare_kind {
    CONFIG_COMPARE_CHANGED, /* the value of an option */
    CONFIG_COMPARE_ADDED,   /* a section, or a member of a family: server.ID */
    CONFIG_COMPARE_REMOVED,
    /* an unchanged deny, allow or access_rules, whose files have other rules */
    CONFIG_COMPARE_RULES,
    CONFIG_COMPARE_FILES,     /* a [tls NAME] with changed files and unchanged options */
    CONFIG_COMPARE_INTERFACE, /* a [listen NAME] with an address on an interface made anew */
    CONFIG_COMPARE_ORDER, /* a [listen NAME] with its routes in another order, options unchanged */
    /* an unchanged token_file or namespace, which is another one */
    CONFIG_COMPARE_CONTENT
};

struct config_compare_change {
    enum config_compare_kind kind;
    enum option_section section;
    const char *name;                /* of the section; NULL: unnamed kind */
    const char *key;                 /* NULL: the section as a whole */
    const char *old_text, *new_text; /* as in the file, or the default; NULL: no value */
    size_t old_rules, new_rules;     /* CONFIG_COMPARE_RULES only */
    const char *content;             /* CONFIG_COMPARE_CONTENT only: what to say of it */
    enum option_applies applies;
    unsigned line; /* in the new file, of option or section; DIAGNOSTICS_WHOLE_FILE: not there */
};

/* Changes, sorted by section (as in enum option_section), name and key. */
struct config_compare {
    struct config_compare_change *list;
    size_t n, capacity;
};

/*
 * config_compare_create(out, from, to):
 * List what ${to} changes. An added or removed section is one change, without its options.
 *
 * Owns:   the caller calls config_compare_destroy(); ${from} and ${to} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int config_compare_create(struct config_compare **out, const struct config *from,
                          const struct config *to) NODISCARD;

/*
 * config_compare_refuse(cmp, diagnostics):
 * Report each change that needs an upgrade. ${diagnostics} must come from the load of ${to},
 * because they know the included file of each line.
 *
 * Thread: owner of ${cmp}
 */
void config_compare_refuse(const struct config_compare *cmp, struct diagnostics *diagnostics);

struct config_compare_text {
    char text[768];
};

/*
 * config_compare_text(out, change):
 * Format `[listen web] idle_timeout: 1h -> 30m (live)`; return ${out}->text. For a server the text
 * has only the words that differ, for long values only the part that differs.
 */
const char *config_compare_text(struct config_compare_text *out,
                                const struct config_compare_change *change);

/* config_compare_destroy(cmp): free ${cmp} or NULL. Thread: owner of ${cmp} */
void config_compare_destroy(struct config_compare *cmp);

#endif
