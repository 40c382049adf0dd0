/* config/config_edits_move: edits of another configuration, or of another process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/config_edits_internal.h"
#include "config/config_memory.h"

/* An edit to make again. */
struct config_edits_item {
    const char *upstream, *id, *text, *before;
};

struct config_edits_list {
    const struct config_edits_item *items;
    unsigned n;
    FILE *notes;
};

static bool config_edits_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void config_edits_note(const struct config_edits_list *list,
                              const struct config_edits_item *item, const char *why)
{
    fprintf(list->notes, "upstream %s: server %s: %s by an administrator: not so any more: %s\n",
            item->upstream, item->id, item->text ? "added" : "removed", why);
}

/* Does the file of ${e} have the same line as that of the edit? Else its line is used. */
static bool config_edits_holds(const struct config_edits *e, const struct config_edits_list *list,
                               const struct config_edits_item *item)
{
    const char *now = config_edits_line_of(e->base, item->upstream, item->id);

    if (config_edits_same_text(now, item->before))
        return true;
    if (!config_edits_same_text(now, item->text))
        config_edits_note(list, item, "the configuration has another line for it now, or none");
    return false;
}

static int config_edits_try(struct config_edits *e, const struct config_edits_list *list,
                            const struct config_edits_item *item)
{
    struct config_edit edit = {.upstream = item->upstream, .server = item->id, .line = item->text};
    int rc = 0;

    if (item->text && item->before) {
        edit.line = NULL;
        rc = config_edits_remove(e, &edit, true);
        edit.line = item->text;
    }
    if (rc == 0)
        rc = config_edits_server(e, &edit);
    if (rc == 0 || rc == -ENOMEM)
        return rc;
    config_edits_note(list, item, edit.problem);
    if (!item->text || !item->before)
        return 0;
    edit.line = item->before;
    return config_edits_server(e, &edit);
}

/* First new servers, then other lines, then removals, which leave each upstream one. */
static unsigned config_edits_turn(const struct config_edits_item *item)
{
    if (!item->text)
        return 2;
    return item->before ? 1 : 0;
}

static int config_edits_redo(struct config **config, const struct config_edits_list *list)
{
    struct config *base = config_edits_base(*config), *next;
    struct config_edits *e;
    int rc = config_edits_begin(&e, base, 3 * list->n); /* see config_edits_try() */

    if (rc < 0) {
        config_free(base);
        return rc;
    }
    for (unsigned turn = 0; turn < 3; turn++)
        for (unsigned i = 0; i < list->n && rc == 0; i++)
            if (config_edits_turn(&list->items[i]) == turn &&
                config_edits_holds(e, list, &list->items[i]))
                rc = config_edits_try(e, list, &list->items[i]);
    if (rc < 0) {
        config_edits_cancel(e);
        config_free(base);
        return rc;
    }
    next = config_edits_end(e);
    config_free(*config);
    if (config_edits_count(next) > 0) {
        *config = next;
        config_free(base);
        return 0;
    }
    config_free(next);
    *config = base;
    return 0;
}

int config_edits_move(struct config **config, const struct config *running, FILE *notes)
{
    const struct config_memory *m = running->memory;
    struct config_edits_item *items;
    int rc;

    if (m->n_edits == 0 && !(*config)->memory->base)
        return 0;
    items = calloc((size_t)m->n_edits + 1, sizeof(items[0]));
    if (!items)
        return -ENOMEM;
    for (unsigned i = 0; i < m->n_edits; i++)
        items[i] = (struct config_edits_item){.upstream = m->edits[i]->upstream,
                                              .id = m->edits[i]->id,
                                              .text = m->edits[i]->text,
                                              .before = m->edits[i]->before};
    rc = config_edits_redo(
        config, &(struct config_edits_list){.items = items, .n = m->n_edits, .notes = notes});
    free(items);
    return rc;
}

/* ---- another process ---- */

void config_edits_write(const struct config *config, FILE *f)
{
    const struct config_memory *m = config->memory;

    for (unsigned i = 0; i < m->n_edits; i++) {
        const struct config_edits_record *record = m->edits[i];
        const char *before = record->before ? record->before : "-";

        fprintf(f, "edit %s/%s %c %zu %s", record->upstream, record->id, record->text ? '+' : '-',
                record->before ? strlen(before) : 0, before);
        fprintf(f, "%s%s\n", record->text ? " " : "", record->text ? record->text : "");
    }
}

/* Cut ${line} into ${item}; false: it is no edit. */
static bool config_edits_read_line(struct config_edits_item *item, char *line)
{
    const char *word = strsep(&line, " "), *sign;
    char *slash;
    size_t len, n;

    if (!line || strcmp(word, "edit") != 0)
        return false;
    item->upstream = strsep(&line, " ");
    slash = strchr(item->upstream, '/');
    sign = strsep(&line, " ");
    if (!slash || !sign || !line)
        return false;
    *slash = '\0';
    item->id = slash + 1;
    len = strtoul(line, &line, 10);
    n = len > 0 ? len : 1; /* "-" */
    if (*line != ' ' || strlen(++line) < n)
        return false;
    item->before = len > 0 ? line : NULL;
    item->text = NULL;
    if (*sign == '-')
        return line[n] == '\0';
    if (line[n] != ' ')
        return false;
    line[n] = '\0';
    item->text = line + n + 1;
    return true;
}

int config_edits_read(struct config **config, const char *text, FILE *notes)
{
    char *copy = strdup(text), *rest = copy, *line;
    struct config_edits_list list = {.notes = notes};
    struct config_edits_item *items;
    size_t n = 1;
    int rc = 0;

    for (const char *c = text; *c; c++)
        n += *c == '\n';
    items = calloc(n, sizeof(items[0]));
    if (!copy || !items)
        rc = -ENOMEM;
    while (rc == 0 && (line = strsep(&rest, "\n")))
        list.n += config_edits_read_line(&items[list.n], line);
    list.items = items;
    if (rc == 0 && list.n > 0)
        rc = config_edits_redo(config, &list);
    free(items);
    free(copy);
    return rc;
}
