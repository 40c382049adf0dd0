#include "stats/figure_json.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "net/address.h"
#include "stats/session_reason.h"

/*
 * Key of the array of an upstream's servers. A figure of this name, their number, is left out.
 */
#define FIGURE_JSON_SERVERS "servers"

void figure_json_string(struct text *out, const char *string)
{
    text_puts(out, "\"");
    while (*string != '\0') {
        unsigned n = text_character_bytes(string);

        if (n == 0)
            text_puts(out, "\xef\xbf\xbd");
        else if ((unsigned char)*string < 0x20 || *string == 0x7f)
            text_printf(out, "\\u%04x", (unsigned)*string);
        else if (*string == '"' || *string == '\\')
            text_printf(out, "\\%c", *string);
        else
            text_add(out, string, n);
        string += n > 0 ? n : 1;
    }
    text_puts(out, "\"");
}

static void figure_json_ms(struct text *out, uint64_t ns)
{
    text_printf(out, "%" PRIu64 ".%06" PRIu64, ns / NS_PER_MS, ns % NS_PER_MS);
}

/* Write the upper limit of the quantile's bucket; null for the last bucket. */
static void figure_json_quantile(struct text *out, const struct histogram_view *times,
                                 const char *key, unsigned permille)
{
    int64_t ns = histogram_quantile_ns(times, permille);

    text_printf(out, ",\"%s\":", key);
    if (ns == CLOCK_NEVER)
        text_puts(out, "null");
    else
        figure_json_ms(out, (uint64_t)ns);
}

static void figure_json_times(struct text *out, const struct histogram_view *times)
{
    bool is_first = true;

    text_printf(out, "{\"count\":%" PRIu64 ",\"sum_ms\":", times->count);
    figure_json_ms(out, times->ns);
    figure_json_quantile(out, times, "p50_ms", 500);
    figure_json_quantile(out, times, "p99_ms", 990);
    text_puts(out, ",\"buckets\":{");
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (times->bucket[i] == 0)
            continue;
        text_puts(out, is_first ? "" : ",");
        is_first = false;
        if (i == HISTOGRAM_BUCKETS - 1)
            text_puts(out, "\"longer\":");
        else
            text_printf(out, "\"under_%" PRId64 "us\":", histogram_limit_ns(i) / NS_PER_US);
        text_printf(out, "%" PRIu64, times->bucket[i]);
    }
    text_puts(out, "}}");
}

static void figure_json_ends(struct text *out, const uint64_t *ended)
{
    char word[SESSION_REASON_WORD_BYTES];

    for (unsigned i = SESSION_OPEN + 1; i < SESSION_REASONS; i++)
        text_printf(out, "%s\"%s\":%" PRIu64, i == SESSION_OPEN + 1 ? "{" : ",",
                    session_reason_word(word, (enum session_reason)i), ended[i]);
    text_puts(out, "}");
}

static void figure_json_int64(struct text *out, const struct figure *f, int64_t value)
{
    if (f->unit == FIGURE_NS)
        figure_json_ms(out, value > 0 ? (uint64_t)value : 0);
    else
        text_printf(out, "%" PRId64, value);
}

static void figure_json_text(struct text *out, const char *value)
{
    if (value)
        figure_json_string(out, value);
    else
        text_puts(out, "null");
}

static void figure_json_addresses(struct text *out, const struct figure_addresses *addresses)
{
    char text[ADDRESS_TEXT_BYTES];

    text_puts(out, "[");
    for (unsigned i = 0; i < addresses->n; i++) {
        address_format(text, sizeof(text), &addresses->list[i]);
        text_puts(out, i > 0 ? "," : "");
        figure_json_string(out, text);
    }
    text_puts(out, "]");
}

static void figure_json_figure(struct text *out, const struct figure_table *table,
                               const struct figure *f, const void *values)
{
    const void *member = figure_value(table, f, values);

    if (f->kind == FIGURE_DERIVED || strcmp(f->name, FIGURE_JSON_SERVERS) == 0)
        return;
    if (table->part)
        text_printf(out, ",\"%s\":", table->part);
    else
        text_printf(out, ",\"%s%s\":", table->prefix ? table->prefix : "", f->name);
    switch (f->type) {
    case FIGURE_BOOL: text_puts(out, *(const bool *)member ? "true" : "false"); break;
    case FIGURE_UNSIGNED: text_printf(out, "%u", *(const unsigned *)member); break;
    case FIGURE_UINT64: text_printf(out, "%" PRIu64, *(const uint64_t *)member); break;
    case FIGURE_INT64: figure_json_int64(out, f, *(const int64_t *)member); break;
    case FIGURE_STRING: figure_json_text(out, *(const char *const *)member); break;
    case FIGURE_TIMES: figure_json_times(out, member); break;
    case FIGURE_ENDS: figure_json_ends(out, member); break;
    case FIGURE_LIST: figure_json_addresses(out, member); break;
    }
}

/* ---- objects ---- */

static bool figure_json_is(const struct figure_json *j, const struct figure_object *object)
{
    return j->depth > 0 && j->object.subject == object->subject && j->object.name == object->name &&
           j->object.owner == object->owner;
}

static void figure_json_close(struct figure_json *j)
{
    if (j->depth == 2)
        text_puts(j->out, "}]}");
    else if (j->depth == 1)
        text_puts(j->out, j->subject == FIGURE_UPSTREAM ? ",\"" FIGURE_JSON_SERVERS "\":[]}" : "}");
    j->depth = 0;
}

static void figure_json_open(struct figure_json *j, const struct figure_object *object)
{
    if (object->subject == FIGURE_SERVER) {
        MUST(j->depth > 0);
        text_puts(j->out, j->depth == 2 ? "},{" : ",\"" FIGURE_JSON_SERVERS "\":[{");
        j->depth = 2;
    } else {
        figure_json_close(j);
        text_puts(j->out, j->has_objects ? ",{" : "{");
        j->has_objects = true;
        j->depth = 1;
    }
    j->object = *object;
    text_puts(j->out, "\"name\":");
    figure_json_string(j->out, object->name ? object->name : "");
}

static void figure_json_visit(struct figure_visitor *v, const struct figure_table *table,
                              const struct figure_object *object, const void *values)
{
    struct figure_json *j = CONTAINER_OF(v, struct figure_json, visitor);
    bool is_server = j->subject == FIGURE_UPSTREAM && object->subject == FIGURE_SERVER;

    if (object->subject != j->subject && !is_server)
        return;
    if (!figure_json_is(j, object))
        figure_json_open(j, object);
    for (unsigned i = 0; i < table->n; i++)
        figure_json_figure(j->out, table, &table->figures[i], values);
}

void figure_json_begin(struct figure_json *j, enum figure_subject subject, struct text *out)
{
    *j = (struct figure_json){
        .visitor = {.visit = figure_json_visit}, .subject = subject, .out = out};
    text_puts(out, "[");
}

void figure_json_end(struct figure_json *j)
{
    figure_json_close(j);
    text_puts(j->out, "]");
}
