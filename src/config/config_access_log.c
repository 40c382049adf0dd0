#include "config/config_access_log.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/config_memory.h"
#include "config/config_names.h"
#include "option/option_access_log.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "stats/access_log_format.h"

static const struct listener_log_conf *config_access_log_find(const struct config *config,
                                                              const char *name)
{
    for (unsigned i = 0; i < config->server.n_access_logs; i++)
        if (strcmp(config->server.access_logs[i].name, name) == 0)
            return &config->server.access_logs[i];
    return NULL;
}

static void config_access_log_refuse(const struct config *config, const struct section *section,
                                     const char *name, bool is_only,
                                     struct diagnostics *diagnostics)
{
    struct ini_entry *entry = ini_find(section->source, "access_log");
    const struct config_name missing = {.section = section,
                                        .entry = entry,
                                        .kind = OPTION_ACCESS_LOG,
                                        .text = name,
                                        .words = is_only ? option_access_log_targets : NULL,
                                        .allowed =
                                            option_find(OPTION_LISTEN, "access_log")->allowed};

    entry->refused = true;
    config_names_refuse(&missing, config->memory, diagnostics);
}

/* A listener may live longer than the section: see listener_conf.memory. */
static int config_access_log_copy(struct listener_log_conf *out,
                                  const struct listener_log_conf *from, struct arena *arena)
{
    *out = *from;
    out->name = arena_text(arena, from->name, strlen(from->name));
    if (from->where) /* else it is missing, which is an error */
        out->where = arena_text(arena, from->where, strlen(from->where));
    if (!out->name || (from->where && !out->where))
        return -ENOMEM;
    return access_log_format_copy(&out->format, from->format, arena);
}

int config_access_log_resolve(const struct config *config, const struct section *section,
                              struct diagnostics *diagnostics)
{
    struct listener_access_log_conf *conf = &((struct listener_conf *)section->conf)->access_log;
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < conf->n_names; i++) {
        const struct listener_log_conf *log = config_access_log_find(config, conf->names[i]);

        if (log)
            rc = config_access_log_copy(&conf->logs[i], log, section->arena);
        else
            config_access_log_refuse(config, section, conf->names[i], conf->n_names == 1,
                                     diagnostics);
    }
    return rc;
}

static bool config_access_log_is_used(const struct config *config, const char *name)
{
    const struct config_memory *m = config->memory;

    for (unsigned i = 0; i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_LISTEN && section_refused(&m->sections[i], "access_log"))
            return true; /* perhaps there */
    for (unsigned i = 0; i < config->server.n_listeners; i++) {
        const struct listener_access_log_conf *conf = &config->server.listeners[i].access_log;

        for (unsigned j = 0; j < conf->n_names; j++)
            if (strcmp(conf->names[j], name) == 0)
                return true;
    }
    return false;
}

void config_access_log_check(const struct config *config, const struct section *section,
                             struct diagnostics *diagnostics)
{
    for (const struct option_word *w = option_access_log_targets; w->word; w++)
        if (strcmp(section->name, w->word) == 0) {
            diagnostics_add(diagnostics, section->source->line,
                            "[%s] has the name of a target (another name)", section->source->name);
            return;
        }
    if (!config_access_log_is_used(config, section->name))
        diagnostics_warn(diagnostics, section->source->line,
                         "[%s] has no effect: no listener names it (access_log = %s)",
                         section->source->name, section->name);
}
