#include "config/config_edits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/config_edits_internal.h"
#include "config/config_memory.h"

static void config_edits_release_arena(void *a)
{
    arena_release(a);
}

int config_edits_keep(struct arena *a, struct arena *other)
{
    int rc = arena_own(a, arena_hold(other), config_edits_release_arena);

    if (rc < 0)
        arena_release(other);
    return rc;
}

/* ---- begin and end ---- */

/* Called when the memory of an edited configuration is freed. */
static void config_edits_release(void *memory)
{
    const struct config_memory *m = memory;

    for (unsigned i = 0; i < m->n_edits; i++)
        arena_release(m->edits[i]->arena);
    config_free(m->base);
}

static int config_edits_copy_sections(struct config *next, const struct config *from)
{
    const struct config_memory *old = from->memory;
    struct config_memory *m = next->memory;

    m->sections = arena_alloc(m->arena, old->n_sections, sizeof(m->sections[0]));
    next->server.upstreams =
        arena_alloc(m->arena, from->server.n_upstreams, sizeof(*next->server.upstreams));
    if (!m->sections || !next->server.upstreams)
        return -ENOMEM;
    for (unsigned i = 0; i < from->server.n_upstreams; i++)
        next->server.upstreams[i] = from->server.upstreams[i];
    for (; m->n_sections < old->n_sections; m->n_sections++) {
        struct section *section = &m->sections[m->n_sections];

        *section = old->sections[m->n_sections];
        (void)arena_hold(section->arena);
        if (section->kind == OPTION_UPSTREAM)
            section->conf = next->server.upstreams +
                            ((const struct upstream_conf *)section->conf - from->server.upstreams);
    }
    return 0;
}

static int config_edits_copy(struct config_edits *e, const struct config *from)
{
    struct config *next = e->next;
    struct config_memory *m = next->memory;
    int rc;

    next->process = from->process;
    next->admin = from->admin;
    next->server = from->server;
    m->ini = e->base->memory->ini;
    m->base = config_hold(e->base);
    rc = arena_own(m->arena, m, config_edits_release);
    if (rc < 0) {
        config_free(m->base);
        return rc;
    }
    m->edits = arena_alloc(m->arena, (size_t)from->memory->n_edits + e->max, sizeof(m->edits[0]));
    if (!m->edits)
        return -ENOMEM;
    for (; m->n_edits < from->memory->n_edits; m->n_edits++) {
        m->edits[m->n_edits] = from->memory->edits[m->n_edits];
        (void)arena_hold(m->edits[m->n_edits]->arena);
    }
    return config_edits_copy_sections(next, from);
}

int config_edits_begin(struct config_edits **out, const struct config *running, unsigned max)
{
    struct config_edits *e = calloc(1, sizeof(*e));
    int rc = e ? config_create(&e->next) : -ENOMEM;

    if (rc < 0) {
        free(e);
        return rc;
    }
    e->base = config_edits_base((struct config *)running);
    e->max = max;
    e->is_open = calloc((size_t)running->memory->n_sections + 1, sizeof(e->is_open[0]));
    rc = e->is_open ? config_edits_copy(e, running) : -ENOMEM;
    if (rc < 0) {
        config_edits_cancel(e);
        return rc;
    }
    *out = e;
    return 0;
}

void config_edits_cancel(struct config_edits *e)
{
    config_free(e->next);
    config_free(e->base);
    free(e->is_open);
    free(e);
}

struct config *config_edits_end(struct config_edits *e)
{
    struct config *next = config_hold(e->next);

    config_edits_cancel(e);
    return next;
}

unsigned config_edits_count(const struct config *config)
{
    return config->memory->n_edits;
}

struct config *config_edits_base(struct config *config)
{
    return config_hold(config->memory->base ? config->memory->base : config);
}

/* ---- sections ---- */

int config_edits_find_section(const struct config *config, const char *upstream)
{
    const struct config_memory *m = config->memory;

    for (unsigned i = 0; i < m->n_sections; i++)
        if (m->sections[i].kind == OPTION_UPSTREAM && strcmp(m->sections[i].name, upstream) == 0)
            return (int)i;
    return -1;
}

const char *config_edits_line_of(const struct config *config, const char *upstream, const char *id)
{
    int i = config_edits_find_section(config, upstream);
    char key[INI_NAME_BYTES + 1];
    const struct ini_entry *entry;

    snprintf(key, sizeof(key), CONFIG_EDITS_SERVER_KEY "%s", id);
    entry = i < 0 ? NULL : section_entry(&config->memory->sections[i], key);
    return entry ? entry->value : NULL;
}

static int config_edits_copy_source(struct section *section, unsigned max)
{
    const struct ini_section *from = section->source;
    struct ini_section *source = arena_alloc(section->arena, 1, sizeof(*source));

    if (!source)
        return -ENOMEM;
    *source = *from;
    source->entries =
        arena_alloc(section->arena, (size_t)from->n_entries + max, sizeof(*source->entries));
    if (!source->entries)
        return -ENOMEM;
    memcpy(source->entries, from->entries, from->n_entries * sizeof(*source->entries));
    section->source = source;
    return 0;
}

/* Its servers have what they point at in the file's section, or in a record. */
static int config_edits_keep_servers(const struct config_edits *e, unsigned i, struct arena *arena)
{
    const struct config_memory *m = e->next->memory;
    int rc = config_edits_keep(arena, e->base->memory->sections[i].arena);

    for (unsigned k = 0; k < m->n_edits && rc == 0; k++)
        if (m->edits[k]->text && strcmp(m->edits[k]->upstream, m->sections[i].name) == 0)
            rc = config_edits_keep(arena, m->edits[k]->arena);
    return rc;
}

int config_edits_open(struct config_edits *e, unsigned i)
{
    struct section *section = &e->next->memory->sections[i];
    struct upstream_conf *conf = section->conf;
    const struct upstream_server_conf *servers = conf->servers;
    struct arena *arena;
    int rc;

    if (e->is_open[i])
        return 0;
    rc = arena_create(&arena);
    if (rc < 0)
        return rc;
    arena_release(section->arena); /* the configuration that is edited has it, too */
    section->arena = conf->memory = arena;
    e->is_open[i] = true;
    rc = config_edits_keep_servers(e, i, arena);
    if (rc < 0)
        return rc;
    conf->servers = arena_alloc(arena, (size_t)conf->n_servers + e->max, sizeof(conf->servers[0]));
    if (!conf->servers)
        return -ENOMEM;
    memcpy(conf->servers, servers, conf->n_servers * sizeof(conf->servers[0]));
    return config_edits_copy_source(section, e->max);
}
