/*
 * config/config_defaults: [defaults KIND], the options that sections of a kind share.
 *
 * They hold from there on, to the end of their file and in the files that it includes. An option
 * that the section gives itself overrides its default, and a later default an earlier one; a family
 * of options (check_step.ID) is overridden as a whole. A default without effect is left out.
 */
#ifndef CONFIG_CONFIG_DEFAULTS_H
#define CONFIG_CONFIG_DEFAULTS_H

#include <stdbool.h>

#include "base/must.h"
#include "option/section.h"
#include "ini/ini_include.h"

struct arena;
struct diagnostics;

/* Defaults of each kind in each file that is being read: the main file, its include, and so on. */
#define CONFIG_DEFAULTS_IN_USE ((unsigned)OPTION_SECTIONS * (INI_INCLUDE_DEPTH + 1))

struct config_defaults {
    struct arena *arena; /* owns the lists of entries */
    unsigned n;
    struct config_defaults_of {
        enum option_section kind;
        unsigned depth; /* as in struct ini_section */
        struct ini_section section;
    } in_use[CONFIG_DEFAULTS_IN_USE];
};

/* config_defaults_is(source): is ${source} a [defaults KIND]? */
bool config_defaults_is(const struct ini_section *source);

/* config_defaults_leave(d, source): drop defaults of files that ended before ${source}. */
void config_defaults_leave(struct config_defaults *d, const struct ini_section *source);

/*
 * config_defaults_add(d, source, diagnostics):
 * Use the entries of ${source}, a [defaults KIND], in the sections of that kind that follow. Report
 * those that are not valid, unknown kinds, and options that have no default, such as addresses.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_defaults_add(struct config_defaults *d, struct ini_section *source,
                        struct diagnostics *diagnostics) NODISCARD;

/*
 * config_defaults_apply(d, section):
 * Let section->source have the defaults, too. Errors: 0; -ENOMEM
 */
int config_defaults_apply(const struct config_defaults *d, struct section *section) NODISCARD;

#endif
