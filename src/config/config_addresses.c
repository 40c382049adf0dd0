#include "config/config_addresses.h"

#include "config/config.h"
#include "config/config_memory.h"
#include "ini/diagnostics.h"
#include "net/address.h"

static void config_addresses_check_reuseport(const struct config_section *section,
                                             struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    char text[ADDRESS_TEXT_BYTES];

    for (unsigned i = 0; conf->reuseport > 1 && i < conf->n_addresses; i++) {
        if (!address_is_unix(&conf->addresses[i]))
            continue;
        diagnostics_add(
            diagnostics, config_section_valid_entry(section, "reuseport")->line,
            "[%s] reuseport: the unix socket %s cannot be shared (1, or TCP addresses only)",
            section->source->name,
            QUOTE_TEXT(address_format(text, sizeof(text), &conf->addresses[i])));
        return;
    }
}

struct place {
    const struct config_section *section;
    const struct address *address;
};

/* Find an earlier address in conflict with address ${i} of section ${last}. */
static bool config_addresses_find_conflict(struct place *out, const struct config_memory *m,
                                           unsigned last, unsigned i)
{
    const struct listener_conf *mine = m->sections[last].conf;

    for (unsigned s = 0; s <= last; s++) {
        const struct listener_conf *other = m->sections[s].conf;

        if (m->sections[s].kind != OPTION_LISTEN)
            continue;
        for (unsigned j = 0; j < (s == last ? i : other->n_addresses); j++) {
            bool reuseport = mine->reuseport > 1 && other->reuseport > 1;

            *out = (struct place){&m->sections[s], &other->addresses[j]};
            if (address_conflicts(out->address, &mine->addresses[i], reuseport))
                return true;
        }
    }
    return false;
}

static void config_addresses_check_conflicts(const struct config_memory *m, unsigned s,
                                             struct diagnostics *diagnostics)
{
    const struct config_section *section = &m->sections[s];
    const struct listener_conf *conf = section->conf;
    const struct config_section *reported = NULL;
    char text[ADDRESS_TEXT_BYTES], other[ADDRESS_TEXT_BYTES];

    for (unsigned i = 0; i < conf->n_addresses; i++) {
        const struct address *a = &conf->addresses[i];
        struct place taken;

        if (!config_addresses_find_conflict(&taken, m, s, i) || taken.section == reported)
            continue; /* ranges of ports may have many */
        reported = taken.section;
        if (address_equal(taken.address, a))
            diagnostics_add(
                diagnostics, config_section_valid_entry(section, "address")->line,
                "[%s] address: %s is taken by %s, [%s] (each address once)", section->source->name,
                QUOTE_TEXT(address_format(text, sizeof(text), a)),
                DIAGNOSTICS_LINE(diagnostics,
                                 config_section_valid_entry(taken.section, "address")->line),
                taken.section->source->name);
        else
            diagnostics_add(
                diagnostics, config_section_valid_entry(section, "address")->line,
                "[%s] address: %s conflicts with %s of %s, [%s] (all addresses of "
                "a port or single ones, unless both listeners have reuseport)",
                section->source->name, QUOTE_TEXT(address_format(text, sizeof(text), a)),
                QUOTE_TEXT(address_format(other, sizeof(other), taken.address)),
                DIAGNOSTICS_LINE(diagnostics,
                                 config_section_valid_entry(taken.section, "address")->line),
                taken.section->source->name);
    }
}

void config_addresses_check(const struct config *config, unsigned s,
                            struct diagnostics *diagnostics)
{
    config_addresses_check_reuseport(&config->memory->sections[s], diagnostics);
    config_addresses_check_conflicts(config->memory, s, diagnostics);
}
