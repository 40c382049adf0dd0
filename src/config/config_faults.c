/* config/config_faults: see config_faults.h. */
#include "config/config_faults.h"

#include "config/config_memory.h"
#include "config/diagnostics.h"
#include "handlers/fault_handler.h"
#include "server/listener.h"

/* ${key} is set, so it has a line. */
static void refuse(const struct config_section *section, const char *key, const char *what,
                   struct diagnostics *diagnostics)
{
    diagnostics_add(diagnostics, config_section_entry(section, key)->line, "[%s] %s: %s",
                    section->source->name, key, what);
}

void config_faults_check(const struct config_section *section, bool allowed,
                         struct diagnostics *diagnostics)
{
    const struct fault_handler_conf *conf =
        &((const struct listener_conf *)section->conf)->pipeline.fault;
    const struct {
        const char *key;
        bool is_set;
    } faults[] = {{"fault_delay", conf->delay_ns > 0},
                  {"fault_jitter", conf->jitter_ns > 0},
                  {"fault_rate", conf->rate > 0},
                  {"fault_reset_after", conf->reset_after > 0},
                  {"fault_drop", conf->drop > 0}},
      others[] = {{"fault_drop_as", conf->drop_as != FAULT_DROP_RESET},
                  {"fault_percent", conf->percent != 100},
                  {"fault_clients", conf->clients.n > 0},
                  {"fault_seed", conf->seed > 0}};

    for (size_t i = 0; !allowed && i < ARRAY_LEN(faults); i++)
        if (faults[i].is_set)
            refuse(section, faults[i].key,
                   "faults are not allowed (with [reactord] allow_faults = yes, for tests only)",
                   diagnostics);
    for (size_t i = 0; !fault_handler_wanted(conf) && i < ARRAY_LEN(others); i++)
        if (others[i].is_set)
            refuse(section, others[i].key,
                   "there is no fault (with fault_delay, fault_jitter, fault_rate, "
                   "fault_reset_after or fault_drop)",
                   diagnostics);
}
