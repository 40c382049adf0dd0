#include "config/config_compare.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/config_memory.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "tls/tls_conf.h"
#include "tls/tls_slot.h"

#define CONFIG_COMPARE_FIRST_CAPACITY 64

struct pair {
    const struct section *from, *to;
};

static int config_compare_add(struct config_compare *cmp, struct config_compare_change change)
{
    size_t capacity = cmp->capacity > 0 ? 2 * cmp->capacity : CONFIG_COMPARE_FIRST_CAPACITY;
    struct config_compare_change *larger;

    if (cmp->n == cmp->capacity) {
        larger = realloc(cmp->list, capacity * sizeof(*larger));
        if (!larger)
            return -ENOMEM;
        cmp->list = larger;
        cmp->capacity = capacity;
    }
    cmp->list[cmp->n++] = change;
    return 0;
}

static unsigned config_compare_line(const struct section *section, const struct ini_entry *entry)
{
    if (entry)
        return entry->line;
    return section->source ? section->source->line : DIAGNOSTICS_WHOLE_FILE;
}

static bool config_compare_same_value(const struct option *o, const struct pair *sections)
{
    const char *from = sections->from->conf, *to = sections->to->conf;

    return o->kind->bytes > 0 && memcmp(from + o->offset, to + o->offset, o->kind->bytes) == 0;
}

/* Compare what the equal values of ${o} name. */
static int config_compare_content(struct config_compare *cmp, const struct pair *sections,
                                  const struct option *o, struct config_compare_change *change)
{
    const void *from = sections->from->conf, *to = sections->to->conf;
    const struct option_content *content = o->kind->content;

    if (!content || content->same(o, from, to))
        return 0;
    change->kind = content->rules ? CONFIG_COMPARE_RULES : CONFIG_COMPARE_CONTENT;
    change->content = content->changed;
    if (content->rules) {
        change->old_rules = content->rules(o, from);
        change->new_rules = content->rules(o, to);
    }
    return config_compare_add(cmp, *change);
}

/* Compare an option. ${from}, ${to}: its entry in each file; NULL: not in that file. */
static int config_compare_option(struct config_compare *cmp, const struct pair *sections,
                                 const struct ini_entry *from, const struct ini_entry *to)
{
    enum option_section kind = sections->to->kind;
    const struct option *o = option_find(kind, from ? from->key : to->key);
    bool family = (o->flags & OPTION_FAMILY) != 0;
    struct config_compare_change change = {.kind = CONFIG_COMPARE_CHANGED,
                                           .section = kind,
                                           .name = sections->to->name,
                                           .key = from ? from->key : to->key,
                                           .old_text = from ? from->value : o->fallback,
                                           .new_text = to ? to->value : o->fallback,
                                           .applies = o->applies,
                                           .line = config_compare_line(sections->to, to)};

    if (family && !from)
        change.kind = CONFIG_COMPARE_ADDED;
    else if (family && !to)
        change.kind = CONFIG_COMPARE_REMOVED;
    else if (strcmp(change.old_text, change.new_text) == 0)
        return to ? config_compare_content(cmp, sections, o, &change) : 0;
    else if (config_compare_same_value(o, sections))
        return 0;
    return config_compare_add(cmp, change);
}

static int config_compare_by_key(const void *va, const void *vb)
{
    const struct ini_entry *const *a = va, *const *b = vb;

    return strcmp((*a)->key, (*b)->key);
}

/* Return the entries by key and a final NULL; the caller frees the list. */
static const struct ini_entry **config_compare_entries(const struct section *section)
{
    unsigned n = section->source ? section->source->n_entries : 0;
    const struct ini_entry **list = calloc(n + 1, sizeof(*list));

    for (unsigned i = 0; list && i < n; i++)
        list[i] = &section->source->entries[i];
    if (list)
        qsort(list, n, sizeof(*list), config_compare_by_key);
    return list;
}

static int config_compare_options(struct config_compare *cmp, const struct pair *sections)
{
    const struct ini_entry **all_from = config_compare_entries(sections->from);
    const struct ini_entry **all_to = config_compare_entries(sections->to);
    const struct ini_entry **from = all_from, **to = all_to;
    int rc = all_from && all_to ? 0 : -ENOMEM;

    while (rc == 0 && (*from || *to)) {
        int order = !*from ? 1 : !*to ? -1 : strcmp((*from)->key, (*to)->key);

        rc = config_compare_option(cmp, sections, order <= 0 ? *from : NULL,
                                   order >= 0 ? *to : NULL);
        from += order <= 0;
        to += order >= 0;
    }
    free(all_from);
    free(all_to);
    return rc;
}

static bool config_compare_has_other_files(const struct pair *sections)
{
    const struct tls_conf *to = sections->to->conf;
    struct tls_profile *current = tls_slot_current(to->slot);
    bool same = tls_profile_same_files(current, to->loaded);

    tls_profile_release(current);
    return !same;
}

/* A change of what a section means, without another option. */
static int config_compare_add_meaning(struct config_compare *cmp, enum config_compare_kind kind,
                                      const struct section *to)
{
    return config_compare_add(
        cmp, (struct config_compare_change){.kind = kind,
                                            .section = to->kind,
                                            .name = to->name,
                                            .applies = OPTION_NEW_CONNECTIONS,
                                            .line = config_compare_line(to, NULL)});
}

/* Compare with the files in use: they may have been read again since ${from} was loaded. */
static int config_compare_files(struct config_compare *cmp, const struct pair *sections)
{
    if (sections->to->kind != OPTION_TLS || !config_compare_has_other_files(sections))
        return 0;
    return config_compare_add_meaning(cmp, CONFIG_COMPARE_FILES, sections->to);
}

/* Of equal routes the first in the file is taken. */
static int config_compare_routes(struct config_compare *cmp, const struct pair *sections)
{
    const struct listener_conf *from = sections->from->conf, *to = sections->to->conf;

    for (unsigned i = 0; sections->to->kind == OPTION_LISTEN && i < to->n_routes; i++)
        if (strcmp(from->routes[i].id, to->routes[i].id) != 0)
            return config_compare_add_meaning(cmp, CONFIG_COMPARE_ORDER, sections->to);
    return 0;
}

static int config_compare_interfaces(struct config_compare *cmp, const struct pair *sections)
{
    const struct listener_conf *from = sections->from->conf, *to = sections->to->conf;

    if (sections->to->kind != OPTION_LISTEN)
        return 0;
    for (unsigned i = 0; i < to->n_addresses && i < from->n_addresses; i++)
        if (address_is_on_new_interface(&from->addresses[i], &to->addresses[i]))
            return config_compare_add_meaning(cmp, CONFIG_COMPARE_INTERFACE, sections->to);
    return 0;
}

static int config_compare_order(const struct section *a, const struct section *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->name ? strcmp(a->name, b->name) : 0;
}

static int config_compare_by_name(const void *va, const void *vb)
{
    const struct section *const *a = va, *const *b = vb;

    return config_compare_order(*a, *b);
}

/* Return the sections in order and a final NULL; the caller frees the list. */
static const struct section **config_compare_sections(const struct config *config)
{
    const struct config_memory *m = config->memory;
    const struct section **list = calloc(m->n_sections + 1, sizeof(*list));

    for (unsigned i = 0; list && i < m->n_sections; i++)
        list[i] = &m->sections[i];
    if (list)
        qsort(list, m->n_sections, sizeof(*list), config_compare_by_name);
    return list;
}

/* Compare a section. ${from}, ${to}: in each file; NULL: not in that file. */
static int config_compare_section(struct config_compare *cmp, const struct section *from,
                                  const struct section *to)
{
    const struct section *section = to ? to : from;
    size_t n = cmp->n;
    int rc;

    if (from && to) {
        rc = config_compare_options(cmp, &(struct pair){from, to});
        if (rc == 0 && cmp->n == n)
            rc = config_compare_files(cmp, &(struct pair){from, to});
        if (rc == 0 && cmp->n == n)
            rc = config_compare_routes(cmp, &(struct pair){from, to});
        if (rc == 0)
            rc = config_compare_interfaces(cmp, &(struct pair){from, to});
        return rc;
    }
    return config_compare_add(
        cmp, (struct config_compare_change){
                 .kind = to ? CONFIG_COMPARE_ADDED : CONFIG_COMPARE_REMOVED,
                 .section = section->kind,
                 .name = section->name,
                 .applies = OPTION_LIVE,
                 .line = to ? config_compare_line(to, NULL) : DIAGNOSTICS_WHOLE_FILE});
}

static int config_compare_all(struct config_compare *cmp, const struct section **from,
                              const struct section **to)
{
    int rc = 0;

    while (rc == 0 && (*from || *to)) {
        int order = !*from ? 1 : !*to ? -1 : config_compare_order(*from, *to);

        rc = config_compare_section(cmp, order <= 0 ? *from : NULL, order >= 0 ? *to : NULL);
        from += order <= 0;
        to += order >= 0;
    }
    return rc;
}

int config_compare_create(struct config_compare **out, const struct config *from,
                          const struct config *to)
{
    struct config_compare *cmp = calloc(1, sizeof(*cmp));
    const struct section **all_from = config_compare_sections(from);
    const struct section **all_to = config_compare_sections(to);
    int rc = cmp && all_from && all_to ? config_compare_all(cmp, all_from, all_to) : -ENOMEM;

    free(all_from);
    free(all_to);
    if (rc < 0) {
        config_compare_destroy(cmp);
        return rc;
    }
    *out = cmp;
    return 0;
}

void config_compare_destroy(struct config_compare *cmp)
{
    if (!cmp)
        return;
    free(cmp->list);
    free(cmp);
}
