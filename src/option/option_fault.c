#include "option/option_fault.h"

#include <stddef.h>

#include "base/clock.h"
#include "option/section.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_need.h"
#include "option/option_proxy.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"

static const char *const faults[] = {"fault_delay", "fault_jitter", "fault_rate",
                                     "fault_reset_after", "fault_drop"};

static bool option_fault_is_set(const struct section *section, size_t i)
{
    const struct fault_handler_conf *conf =
        &((const struct listener_conf *)section->conf)->pipeline.fault;
    const bool is_set[ARRAY_LEN(faults)] = {conf->delay_ns > 0, conf->jitter_ns > 0, conf->rate > 0,
                                            conf->reset_after > 0, conf->drop > 0};

    return is_set[i];
}

void option_fault_refuse(const struct section *section, struct diagnostics *diagnostics)
{
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (option_fault_is_set(section, i))
            diagnostics_add(diagnostics, section_entry(section, faults[i])->line,
                            "[%s] %s: faults are not allowed (set allow_faults = yes in "
                            "[reactord], for tests only)",
                            section->source->name, faults[i]);
}

static bool option_fault_has_any(const struct section *section)
{
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (option_fault_is_set(section, i) || section_refused(section, faults[i]))
            return true;
    return false;
}

static const struct option_need needs_fault = {
    option_fault_has_any, NULL,
    "has no effect without a fault (set fault_delay, fault_jitter, fault_rate, fault_reset_after "
    "or fault_drop)",
    NULL};

static const struct option_word drops[] = {
    {"reset", FAULT_DROP_RESET},
    {"silence", FAULT_DROP_SILENCE},
    {NULL, 0},
};

/* option_kind_word stores an unsigned. */
_Static_assert(sizeof(enum fault_drop_as) == sizeof(unsigned), "enum fault_drop_as");

#define FAULT(field) offsetof(struct listener_conf, pipeline.fault.field)

/* clang-format off */
static const struct option fault_rows[] = {
    {"fault_delay", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 60s", "fault injection: delay for bytes from the client",
     FAULT(delay_ns), 0, 60 * NS_PER_S, NULL, NULL},
    {"fault_jitter", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 60s", "fault injection: maximum additional delay, at random",
     FAULT(jitter_ns), 0, 60 * NS_PER_S, NULL, NULL},
    {"fault_rate", &option_kind_size, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 1g", "fault injection: maximum bytes per second, for each direction; 0: no limit",
     FAULT(rate), 0, 1 << 30, NULL, NULL},
    {"fault_reset_after", &option_kind_size, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 1g",
     "fault injection: reset the connection after this many bytes of both directions; 0: never",
     FAULT(reset_after), 0, 1 << 30, NULL, NULL},
    {"fault_drop", &option_kind_percent, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 100", "fault injection: percentage of disturbed connections to drop",
     FAULT(drop), 0, 100, NULL, NULL},
    {"fault_drop_as", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "reset",
     "reset or silence", "fault injection: how dropped clients are treated",
     FAULT(drop_as), 0, 0, drops, &needs_fault},
    {"fault_percent", &option_kind_percent, 0, OPTION_NEW_CONNECTIONS, "100",
     "1 to 100", "fault injection: percentage of connections to disturb",
     FAULT(percent), 1, 100, NULL, &needs_fault},
    {"fault_clients", &option_proxy_trusted, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "10.0.0.0/8, 192.0.2.1, 2001:db8::/32 or unix, comma-separated",
     "fault injection: clients whose connections are disturbed; empty: all clients",
     FAULT(clients), 0, 0, NULL, &needs_fault},
    {"fault_seed", &option_kind_number, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 1000000000", "fault injection: seed of the random choices, to repeat a test; 0: none",
     FAULT(seed), 0, 1000000000, NULL, &needs_fault},
};
/* clang-format on */

const struct option_rows option_fault = {fault_rows, ARRAY_LEN(fault_rows)};
