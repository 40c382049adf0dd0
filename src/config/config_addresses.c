#include "config/config_addresses.h"

#include <errno.h>
#include <stdlib.h>

#include "config/config.h"
#include "config/config_memory.h"
#include "ini/diagnostics.h"
#include "net/address.h"

static void config_addresses_check_reuseport(const struct section *section,
                                             struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    char text[ADDRESS_TEXT_BYTES];

    for (unsigned i = 0; conf->reuseport > 1 && i < conf->n_addresses; i++) {
        if (!address_is_unix(&conf->addresses[i]))
            continue;
        diagnostics_add(
            diagnostics, section_valid_entry(section, "reuseport")->line,
            "[%s] reuseport: the unix socket %s cannot be shared (1, or TCP addresses only)",
            section->source->name,
            QUOTE_TEXT(address_format(text, sizeof(text), &conf->addresses[i])));
        return;
    }
}

/* An address of a listener, in the order of the file. */
struct place {
    const struct section *section;
    const struct address *address;
    const struct place *taken; /* an earlier one in conflict with it; NULL: none */
};

/* Addresses in conflict have the same family and port. */
static int config_addresses_compare_sockets(const struct address *a, const struct address *b)
{
    int rc = (a->u.sa.sa_family > b->u.sa.sa_family) - (a->u.sa.sa_family < b->u.sa.sa_family);

    return rc != 0 ? rc : (int)address_port(a) - (int)address_port(b);
}

static int config_addresses_compare(const void *a, const void *b)
{
    const struct place *x = *(struct place *const *)a, *y = *(struct place *const *)b;
    int rc = config_addresses_compare_sockets(x->address, y->address);

    return rc != 0 ? rc : (x > y) - (x < y);
}

static bool config_addresses_conflict(const struct place *a, const struct place *b)
{
    const struct listener_conf *of_a = a->section->conf, *of_b = b->section->conf;

    return address_conflicts(a->address, b->address, of_a->reuseport > 1 && of_b->reuseport > 1);
}

/* Set `taken` of the ${n} places, with ${sorted} for as many. */
static void config_addresses_find_conflicts(struct place *places, struct place **sorted, size_t n)
{
    size_t first = 0; /* of the same port */

    for (size_t i = 0; i < n; i++)
        sorted[i] = &places[i];
    qsort(sorted, n, sizeof(sorted[0]), config_addresses_compare);
    for (size_t i = 0; i < n; i++) {
        if (config_addresses_compare_sockets(sorted[first]->address, sorted[i]->address) != 0)
            first = i;
        for (size_t j = first; j < i && !sorted[i]->taken; j++)
            if (config_addresses_conflict(sorted[j], sorted[i]))
                sorted[i]->taken = sorted[j];
    }
}

static void config_addresses_report(const struct place *place, struct diagnostics *diagnostics)
{
    const struct section *section = place->section, *taken = place->taken->section;
    unsigned line = section_valid_entry(section, "address")->line;
    char text[ADDRESS_TEXT_BYTES], other[ADDRESS_TEXT_BYTES];

    address_format(text, sizeof(text), place->address);
    if (address_equal(place->taken->address, place->address))
        diagnostics_add(diagnostics, line,
                        "[%s] address: %s is taken by %s, [%s] (each address once)",
                        section->source->name, QUOTE_TEXT(text),
                        DIAGNOSTICS_LINE(diagnostics, section_valid_entry(taken, "address")->line),
                        taken->source->name);
    else
        diagnostics_add(diagnostics, line,
                        "[%s] address: %s conflicts with %s of %s, [%s] (all addresses of "
                        "a port or single ones, unless both listeners have reuseport)",
                        section->source->name, QUOTE_TEXT(text),
                        QUOTE_TEXT(address_format(other, sizeof(other), place->taken->address)),
                        DIAGNOSTICS_LINE(diagnostics, section_valid_entry(taken, "address")->line),
                        taken->source->name);
}

/* Ranges of ports may have many conflicts: tell the first with each other section. */
static void config_addresses_report_all(const struct place *places, size_t n,
                                        struct diagnostics *diagnostics)
{
    const struct section *section = NULL, *reported = NULL;

    for (size_t i = 0; i < n; i++) {
        if (places[i].section != section)
            reported = NULL;
        section = places[i].section;
        if (!places[i].taken || places[i].taken->section == reported)
            continue;
        reported = places[i].taken->section;
        config_addresses_report(&places[i], diagnostics);
    }
}

int config_addresses_check(const struct config *config, struct diagnostics *diagnostics)
{
    const struct config_memory *m = config->memory;
    struct place **sorted, *places;
    size_t max = 1, n = 0;

    for (unsigned s = 0; s < m->n_sections; s++)
        if (m->sections[s].kind == OPTION_LISTEN)
            max += ((const struct listener_conf *)m->sections[s].conf)->n_addresses;
    places = calloc(max, sizeof(places[0]) + sizeof(sorted[0]));
    if (!places)
        return -ENOMEM;
    sorted = (struct place **)(places + max);
    for (unsigned s = 0; s < m->n_sections; s++) {
        const struct listener_conf *conf = m->sections[s].conf;

        if (m->sections[s].kind != OPTION_LISTEN)
            continue;
        config_addresses_check_reuseport(&m->sections[s], diagnostics);
        for (unsigned i = 0; i < conf->n_addresses; i++)
            places[n++] = (struct place){&m->sections[s], &conf->addresses[i], NULL};
    }
    config_addresses_find_conflicts(places, sorted, n);
    config_addresses_report_all(places, n, diagnostics);
    free(places);
    return 0;
}
