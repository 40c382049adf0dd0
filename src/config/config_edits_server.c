/* config/config_edits_server: one edit: see config_edits_server(). */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "balance/balancer.h"
#include "base/arena.h"
#include "base/text_stream.h"
#include "config/config.h"
#include "config/config_edits_internal.h"
#include "config/config_fill.h"
#include "config/config_listen.h"
#include "config/config_memory.h"
#include "config/config_servers.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "ini/ini_environment.h"

/* Stands for the path in diagnostics; it is cut off again, with the line number. */
#define EDITED        "edit"
#define EDITED_PREFIX EDITED ":0: "

static int config_edits_refuse(struct config_edit *edit, int rc, const char *format, ...)
    PRINTF_LIKE(3, 4);
static int config_edits_refuse(struct config_edit *edit, int rc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(edit->problem, sizeof(edit->problem), format, args);
    va_end(args);
    return rc;
}

static int config_edits_find(const struct upstream_conf *conf, const char *id)
{
    for (unsigned i = 0; i < conf->n_servers; i++)
        if (strcmp(conf->servers[i].id, id) == 0)
            return (int)i;
    return -1;
}

/* Return the number of the entry of a server; n_entries: none. */
static unsigned config_edits_find_entry(const struct ini_section *source, const char *id)
{
    unsigned i = 0;

    for (; i < source->n_entries; i++) {
        const char *key = source->entries[i].key;

        if (strncmp(key, CONFIG_EDITS_SERVER_KEY, strlen(CONFIG_EDITS_SERVER_KEY)) == 0 &&
            strcmp(key + strlen(CONFIG_EDITS_SERVER_KEY), id) == 0)
            break;
    }
    return i;
}

/* ---- records ---- */

static int config_edits_find_record(const struct config_memory *m, const char *upstream,
                                    const char *id)
{
    for (unsigned k = 0; k < m->n_edits; k++)
        if (strcmp(m->edits[k]->id, id) == 0 && strcmp(m->edits[k]->upstream, upstream) == 0)
            return (int)k;
    return -1;
}

static int config_edits_create_record(struct config_edits_record **out, const struct config *base,
                                      const struct config_edit *edit)
{
    struct config_edits_record *record;
    const char *before = config_edits_line_of(base, edit->upstream, edit->server);
    struct arena *arena;
    int rc = arena_create(&arena);

    if (rc < 0)
        return rc;
    record = arena_alloc(arena, 1, sizeof(*record));
    if (!record)
        goto err_arena;
    record->arena = arena;
    record->upstream = arena_text(arena, edit->upstream, strlen(edit->upstream));
    record->id = arena_text(arena, edit->server, strlen(edit->server));
    record->before = before ? arena_text(arena, before, strlen(before)) : NULL;
    record->text = edit->line ? arena_text(arena, edit->line, strlen(edit->line)) : NULL;
    if (!record->upstream || !record->id || (before && !record->before) ||
        (edit->line && !record->text))
        goto err_arena;
    *out = record;
    return 0;

err_arena:
    arena_release(arena);
    return -ENOMEM;
}

/* Put ${record} in place of the one of its server, if it says more than the file. */
static void config_edits_use_record(struct config_memory *m, struct config_edits_record *record)
{
    int k = config_edits_find_record(m, record->upstream, record->id);
    bool is_needed = record->text ? !record->before || strcmp(record->text, record->before) != 0
                                  : record->before != NULL;

    if (k >= 0) {
        arena_release(m->edits[k]->arena);
        m->n_edits--;
        memmove(&m->edits[k], &m->edits[k + 1], (m->n_edits - (unsigned)k) * sizeof(m->edits[0]));
    }
    if (is_needed)
        m->edits[m->n_edits++] = record;
    else
        arena_release(record->arena);
}

/* ---- adding ---- */

/* Join the lines of ${text} in edit->problem, without the stand-in for their path. */
static int config_edits_tell(struct config_edit *edit, char *text)
{
    size_t len = 0;
    char *line;

    edit->problem[0] = '\0';
    while ((line = strsep(&text, "\n"))) {
        if (strncmp(line, EDITED_PREFIX, strlen(EDITED_PREFIX)) == 0)
            line += strlen(EDITED_PREFIX);
        if (*line == '\0' || len + 3 >= sizeof(edit->problem))
            continue;
        len += (size_t)snprintf(edit->problem + len, sizeof(edit->problem) - len, "%s%s",
                                len > 0 ? "; " : "", line);
    }
    return -EINVAL;
}

static void config_edits_check_mirrors(const struct config *next, const char *upstream,
                                       struct diagnostics *diagnostics)
{
    const struct config_memory *m = next->memory;

    for (unsigned i = 0; i < m->n_sections; i++) {
        const struct listener_conf *conf = m->sections[i].conf;

        if (m->sections[i].kind == OPTION_LISTEN && conf->mirror &&
            strcmp(conf->mirror, upstream) == 0)
            config_listen_check_mirror(next, &m->sections[i], diagnostics);
    }
}

/* Parse the line into ${record}, in its arena. */
static int config_edits_parse(const struct section *section, struct config_edits_record *record,
                              struct ini_entry *entry, struct diagnostics *diagnostics)
{
    struct upstream_conf into = {.servers = &record->server};
    struct section place = *section;

    place.conf = &into;
    place.arena = record->arena;
    return config_fill_entry(&place, entry, diagnostics);
}

/* Append the server of ${record}; -EINVAL: it is refused, see ${diagnostics}. */
static int config_edits_append(struct config_edits *e, unsigned i,
                               struct config_edits_record *record, struct diagnostics *diagnostics)
{
    struct section *section = &e->next->memory->sections[i];
    struct upstream_conf *conf = section->conf;
    struct ini_entry entry = {.path = "an administrator's addition", .value = record->text};
    char *key =
        arena_alloc(record->arena, strlen(CONFIG_EDITS_SERVER_KEY) + strlen(record->id) + 1, 1);
    int rc = key ? 0 : -ENOMEM;

    if (rc == 0) {
        stpcpy(stpcpy(key, CONFIG_EDITS_SERVER_KEY), record->id);
        entry.key = key;
        rc = config_edits_parse(section, record, &entry, diagnostics);
        record->server.by_hand = true;
    }
    if (rc < 0 || diagnostics_count(diagnostics) > 0)
        return rc < 0 ? rc : -EINVAL;
    conf->servers[conf->n_servers++] = record->server;
    section->source->entries[section->source->n_entries++] = entry;
    rc = config_servers_check(e->next, section, conf->n_servers - 1, diagnostics);
    if (rc == 0)
        config_edits_check_mirrors(e->next, record->upstream, diagnostics);
    if (rc == 0 && diagnostics_count(diagnostics) > 0)
        rc = -EINVAL;
    if (rc == 0)
        return config_edits_keep(section->arena, record->arena);
    conf->n_servers--;
    section->source->n_entries--;
    return rc;
}

/* As config_edits_append(), and tell the problems. */
static int config_edits_append_or_tell(struct config_edits *e, unsigned i,
                                       struct config_edits_record *record, struct config_edit *edit)
{
    struct diagnostics *diagnostics;
    char *text = NULL;
    size_t size;
    FILE *f;
    int rc = diagnostics_create(&diagnostics, EDITED);

    if (rc < 0)
        return rc;
    rc = config_edits_append(e, i, record, diagnostics);
    if (rc == -EINVAL) {
        f = open_memstream(&text, &size);
        rc = f ? diagnostics_write(diagnostics, f) : -ENOMEM;
        if (f && text_stream_close(f, &text) < 0)
            rc = -ENOMEM;
        if (rc == 0)
            rc = config_edits_tell(edit, text);
        free(text);
    }
    diagnostics_destroy(diagnostics);
    return rc;
}

/* The server's line is that of the file again: use what the file's section has. */
static void config_edits_restore(struct config_edits *e, unsigned i, const char *id)
{
    struct section *section = &e->next->memory->sections[i];
    const struct section *from = &e->base->memory->sections[i];
    struct upstream_conf *conf = section->conf;
    const struct upstream_conf *from_conf = from->conf;
    char key[INI_NAME_BYTES + 1];

    snprintf(key, sizeof(key), CONFIG_EDITS_SERVER_KEY "%s", id);
    conf->servers[conf->n_servers++] = from_conf->servers[config_edits_find(from_conf, id)];
    section->source->entries[section->source->n_entries++] = *section_entry(from, key);
}

/*
 * Move the server ${id} from the end to where the file has it: behind the servers that the file has
 * before it. One that the file does not have stays at the end.
 */
static void config_edits_place(struct config_edits *e, unsigned i, const char *id)
{
    const struct upstream_conf *from = e->base->memory->sections[i].conf;
    struct section *section = &e->next->memory->sections[i];
    struct upstream_conf *conf = section->conf;
    struct upstream_server_conf server = conf->servers[conf->n_servers - 1];
    struct ini_section *source = section->source;
    struct ini_entry entry = source->entries[source->n_entries - 1];
    unsigned at = 0, k;

    if (config_edits_find(from, id) < 0)
        return;
    for (k = 0; strcmp(from->servers[k].id, id) != 0; k++)
        at += strcmp(conf->servers[at].id, from->servers[k].id) == 0;
    if (at == conf->n_servers - 1)
        return;
    k = config_edits_find_entry(source, conf->servers[at].id);
    memmove(&conf->servers[at + 1], &conf->servers[at],
            (conf->n_servers - 1 - at) * sizeof(conf->servers[0]));
    conf->servers[at] = server;
    memmove(&source->entries[k + 1], &source->entries[k],
            (source->n_entries - 1 - k) * sizeof(source->entries[0]));
    source->entries[k] = entry;
}

/* Could a file have the line? One that it has was perhaps written with $${NAME}. */
static bool config_edits_fits_in_a_file(const struct config_edits *e,
                                        const struct config_edit *edit)
{
    const char *before = config_edits_line_of(e->base, edit->upstream, edit->server);

    return ini_environment_fits_in_a_file(edit->line) ||
           (before && strcmp(before, edit->line) == 0);
}

static int config_edits_check_text(const struct config_edits *e, struct config_edit *edit)
{
    size_t max =
        INI_LINE_BYTES - strlen(CONFIG_EDITS_SERVER_KEY) - strlen(edit->server) - strlen(" = ''");
    const unsigned char *p = (const unsigned char *)edit->line;

    for (const char *c = edit->server; *c != '\0'; c++)
        if (isupper((unsigned char)*c))
            return config_edits_refuse(edit, -EINVAL,
                                       "the ID %s has upper case: names of servers have lower case",
                                       QUOTE_TEXT(edit->server));
    if (!option_kind_is_name(edit->server))
        return config_edits_refuse(edit, -EINVAL,
                                   "the ID %s is not a name of 1 to %d letters, digits, '_', '.' "
                                   "and '-'",
                                   QUOTE_TEXT(edit->server), OPTION_KIND_NAME_BYTES);
    while (*p >= ' ' && *p != 0x7f)
        p++;
    if (*p != '\0')
        return config_edits_refuse(edit, -EINVAL,
                                   "the server line has a control character (ADDRESS and words, "
                                   "separated by blanks)");
    if (!config_edits_fits_in_a_file(e, edit))
        return config_edits_refuse(edit, -EINVAL,
                                   "the server line has both kinds of quotes or a variable, "
                                   "${NAME}, which no file could keep");
    if (strlen(edit->line) > max)
        return config_edits_refuse(edit, -EINVAL, "the server line is longer than %zu bytes", max);
    return 0;
}

static int config_edits_add(struct config_edits *e, struct config_edit *edit)
{
    int rc = config_edits_check_text(e, edit),
        i = config_edits_find_section(e->next, edit->upstream);
    struct config_edits_record *record;
    const struct upstream_conf *conf;

    if (rc < 0)
        return rc;
    if (i < 0)
        return config_edits_refuse(edit, -ENOENT, "upstream %s does not exist",
                                   QUOTE_TEXT(edit->upstream));
    conf = e->next->memory->sections[i].conf;
    if (config_edits_find(conf, edit->server) >= 0)
        return config_edits_refuse(edit, -EEXIST, "server '%s/%s' exists already", edit->upstream,
                                   edit->server);
    if (conf->n_servers >= BALANCER_MAX_ENDPOINTS)
        return config_edits_refuse(edit, -E2BIG, "upstream %s has %u servers, the maximum",
                                   edit->upstream, conf->n_servers);
    rc = config_edits_open(e, (unsigned)i);
    if (rc == 0)
        rc = config_edits_create_record(&record, e->base, edit);
    if (rc < 0)
        return rc;
    if (record->before && strcmp(record->before, record->text) == 0)
        config_edits_restore(e, (unsigned)i, edit->server);
    else
        rc = config_edits_append_or_tell(e, (unsigned)i, record, edit);
    if (rc < 0) {
        arena_release(record->arena);
        return rc;
    }
    edit->is_looked_up = conf->servers[conf->n_servers - 1].names != UPSTREAM_LITERAL &&
                         !conf->servers[conf->n_servers - 1].disabled;
    config_edits_place(e, (unsigned)i, edit->server);
    config_edits_use_record(e->next->memory, record);
    return 0;
}

/* ---- removing ---- */

static void config_edits_remove_entry(struct ini_section *source, const char *id)
{
    unsigned i = config_edits_find_entry(source, id);

    if (i == source->n_entries)
        return;
    source->n_entries--;
    memmove(&source->entries[i], &source->entries[i + 1],
            (source->n_entries - i) * sizeof(source->entries[0]));
}

int config_edits_remove(struct config_edits *e, struct config_edit *edit, bool last)
{
    int i = config_edits_find_section(e->next, edit->upstream), k, rc;
    struct config_edits_record *record;
    struct upstream_conf *conf;

    if (i < 0)
        return config_edits_refuse(edit, -ENOENT, "upstream %s does not exist",
                                   QUOTE_TEXT(edit->upstream));
    conf = e->next->memory->sections[i].conf;
    k = config_edits_find(conf, edit->server);
    if (k < 0)
        return config_edits_refuse(edit, -ENOENT, "server '%s/%s' does not exist", edit->upstream,
                                   edit->server);
    if (conf->n_servers == 1 && !last)
        return config_edits_refuse(edit, -EINVAL,
                                   "'%s/%s' is the last server of its upstream, which needs one: "
                                   "add another first, or disable this one",
                                   edit->upstream, edit->server);
    rc = config_edits_open(e, (unsigned)i);
    if (rc == 0)
        rc = config_edits_create_record(&record, e->base, edit);
    if (rc < 0)
        return rc;
    conf->n_servers--;
    memmove(&conf->servers[k], &conf->servers[k + 1],
            (conf->n_servers - (unsigned)k) * sizeof(conf->servers[0]));
    config_edits_remove_entry(e->next->memory->sections[i].source, edit->server);
    config_edits_use_record(e->next->memory, record);
    return 0;
}

int config_edits_server(struct config_edits *e, struct config_edit *edit)
{
    edit->is_looked_up = false;
    edit->problem[0] = '\0';
    return edit->line ? config_edits_add(e, edit) : config_edits_remove(e, edit, false);
}
