#include "option/option_pipeline.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "option/option_bytes.h"
#include "option/option_kind.h"
#include "handlers/pipeline_conf.h"
#include "handlers/pipeline_template.h"
#include "ini/diagnostics.h"

static int option_pipeline_refuse_handler(struct option_value *v, const char *name)
{
    const struct handler_type *type;
    struct diagnostics_suggestion near;

    diagnostics_suggest(&near, name);
    for (unsigned i = 0; (type = pipeline_template_type(i)) != NULL; i++)
        diagnostics_offer(&near, type->name);
    if (near.best)
        return option_refuse(v, "%s is not a handler; did you mean '%s'?", QUOTE_TEXT(name),
                             near.best);
    return option_refuse(v, "%s is not a handler", QUOTE_TEXT(name));
}

static int option_pipeline_add_handler(struct option_value *v, struct pipeline_conf *found,
                                       const char *name)
{
    const struct handler_type *type = pipeline_template_find(name);

    if (*name == '\0')
        return option_refuse(v, "a handler is missing beside a comma");
    if (!type)
        return option_pipeline_refuse_handler(v, name);
    for (unsigned i = 0; i < found->n; i++)
        if (found->list[i] == type)
            return option_refuse(v, "%s is given twice", QUOTE_TEXT(name));
    found->list[found->n++] = type;
    return 0;
}

static int option_pipeline_set_pipeline(const struct option *o, struct option_value *v)
{
    struct pipeline_conf *conf = option_field(o, v);
    struct pipeline_conf found = {.n = 0};
    char *list = arena_text(v->arena, v->text, strlen(v->text));

    if (!list)
        return -ENOMEM;
    while (list) {
        int rc = option_pipeline_add_handler(v, &found, option_kind_next_item(&list));

        if (rc < 0)
            return rc;
    }
    memcpy(conf->list, found.list, sizeof(conf->list));
    conf->n = found.n;
    return 0;
}

static int option_pipeline_set_adjustment(const struct option *o, struct option_value *v)
{
    bool negative = v->text[0] == '-';
    uint64_t bytes;
    int64_t value;
    int rc = parse_size(&bytes, v->text + (negative || v->text[0] == '+'), INT64_MAX);

    if (rc == -EINVAL)
        return option_refuse(v, "%s is not a size", QUOTE_TEXT(v->text));
    value = negative ? -(int64_t)bytes : (int64_t)bytes;
    if (rc == -ERANGE || value < o->min || value > o->max)
        return option_refuse(v, "%s is out of range", QUOTE_TEXT(v->text));
    memcpy(option_field(o, v), &value, sizeof(value));
    return 0;
}

static int option_pipeline_add_delimiter(struct option_value *v, struct frame_delimiter_list *list,
                                         const char *text)
{
    uint8_t *bytes = arena_alloc(v->arena, strlen(text) + 1, 1);
    int n;

    if (!bytes)
        return -ENOMEM;
    n = option_bytes_read(bytes, v, text);
    if (n < 0)
        return n;
    if (n == 0)
        return option_refuse(v, "a delimiter is missing beside a comma");
    if (n > FRAME_DELIMITER_BYTES)
        return option_refuse(v, "%s stands for %d bytes", QUOTE_TEXT(text), n);
    for (unsigned i = 0; i < list->n; i++)
        if (list->list[i].len == n && memcmp(list->list[i].bytes, bytes, (size_t)n) == 0)
            return option_refuse(v, "%s is given twice", QUOTE_TEXT(text));
    if (list->n == FRAME_DELIMITER_MAX)
        return option_refuse(v, "there are more than %d", FRAME_DELIMITER_MAX);
    frame_delimiter_add(list, bytes, (size_t)n);
    return 0;
}

static int option_pipeline_set_delimiters(const struct option *o, struct option_value *v)
{
    struct frame_delimiter_list found = {.n = 0};
    char *list = arena_text(v->arena, v->text, strlen(v->text));

    if (!list)
        return -ENOMEM;
    while (list) {
        int rc = option_pipeline_add_delimiter(v, &found, option_kind_next_item(&list));

        if (rc < 0)
            return rc;
    }
    memcpy(option_field(o, v), &found, sizeof(found));
    return 0;
}

static int option_pipeline_set_length_end(const struct option *o, struct option_value *v)
{
    uint8_t *bytes = arena_alloc(v->arena, strlen(v->text) + 1, 1);
    int n;

    if (!bytes)
        return -ENOMEM;
    n = option_bytes_read(bytes, v, v->text);
    if (n < 0)
        return n;
    if (n != 1)
        return option_refuse(v, "the value stands for %d bytes", n);
    if (bytes[0] >= '0' && bytes[0] <= '9')
        return option_refuse(v, "%s is a digit", QUOTE_TEXT(v->text));
    *(uint8_t *)option_field(o, v) = bytes[0];
    return 0;
}

const struct option_kind option_pipeline_delimiters = {option_pipeline_set_delimiters, "", 0, NULL};
const struct option_kind option_pipeline_length_end = {option_pipeline_set_length_end, "", 0, NULL};
const struct option_kind option_pipeline = {option_pipeline_set_pipeline, "", 0, NULL};
const struct option_kind option_pipeline_adjustment = {option_pipeline_set_adjustment,
                                                       ", in b, k, m or g", 0, NULL};
