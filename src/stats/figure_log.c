#include "stats/figure_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "stats/figure.h"
#include "stats/session_reason.h"

/* May be longer than a log line, so that the log marks the line as truncated. */
struct figure_log_line {
    char text[2 * LOG_LINE_BYTES];
    size_t n;
};

PRINTF_LIKE(2, 3)
static void figure_log_add(struct figure_log_line *line, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(line->text + line->n, sizeof(line->text) - line->n, format, args);
    va_end(args);
    line->n += n > 0 ? (size_t)n : 0;
    if (line->n >= sizeof(line->text))
        line->n = sizeof(line->text) - 1;
}

static void figure_log_begin(struct figure_log_line *line, const struct figure_table *table,
                             const struct figure_object *object)
{
    const char *word = table->word ? table->word : figure_words(object->subject)->log;

    figure_log_add(line, "stats");
    if (word)
        figure_log_add(line, " %s", word);
    if (object->owner)
        figure_log_add(line, " %s/%s", object->owner, object->name);
    else if (object->name)
        figure_log_add(line, " %s", object->name);
    if (table->part)
        figure_log_add(line, " %s", table->part);
}

static void figure_log_times(struct figure_log_line *line, const struct histogram_view *times)
{
    char text[LOG_LINE_BYTES];

    figure_log_add(line, "%s", histogram_format(text, sizeof(text), times));
}

static void figure_log_ends(struct figure_log_line *line, const uint64_t *ended)
{
    char word[SESSION_REASON_WORD_BYTES];

    for (unsigned i = SESSION_OPEN + 1; i < SESSION_REASONS; i++)
        if (ended[i] > 0)
            figure_log_add(line, " %s=%" PRIu64, session_reason_word(word, (enum session_reason)i),
                           ended[i]);
}

static void figure_log_int64(struct figure_log_line *line, const struct figure *f, int64_t value)
{
    if (f->unit == FIGURE_NS)
        figure_log_add(line, "%.*f", (int)f->decimals, (double)value / (double)NS_PER_MS);
    else
        figure_log_add(line, "%" PRId64, value);
}

static void figure_log_string(struct figure_log_line *line, const struct figure *f,
                              const char *value)
{
    const char *quote = f->kind == FIGURE_TEXT ? "\"" : "";

    figure_log_add(line, "%s%s%s", quote, value ? value : "", quote);
}

static void figure_log_figure(struct figure_log_line *line, const struct figure *f,
                              const void *member)
{

    if (f->type != FIGURE_TIMES && f->type != FIGURE_ENDS)
        figure_log_add(line, " %s=", f->name);
    switch (f->type) {
    case FIGURE_BOOL: figure_log_add(line, "%s", *(const bool *)member ? "yes" : "no"); break;
    case FIGURE_UNSIGNED: figure_log_add(line, "%u", *(const unsigned *)member); break;
    case FIGURE_UINT64: figure_log_add(line, "%" PRIu64, *(const uint64_t *)member); break;
    case FIGURE_INT64: figure_log_int64(line, f, *(const int64_t *)member); break;
    case FIGURE_STRING: figure_log_string(line, f, *(const char *const *)member); break;
    case FIGURE_TIMES: figure_log_times(line, member); break;
    case FIGURE_ENDS: figure_log_ends(line, member); break;
    case FIGURE_LIST: break;
    }
}

static bool figure_log_is_zero(const struct figure_table *table, const void *values)
{
    const char *bytes = values;

    for (size_t i = 0; i < table->bytes; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void figure_log_visit(struct figure_visitor *v, const struct figure_table *table,
                             const struct figure_object *object, const void *values)
{
    struct figure_log_line line;

    (void)v;
    if (table->is_not_logged || (table->is_not_logged_at_zero && figure_log_is_zero(table, values)))
        return;
    line.n = 0;
    figure_log_begin(&line, table, object);
    for (unsigned i = 0; i < table->n; i++)
        figure_log_figure(&line, &table->figures[i],
                          figure_value(table, &table->figures[i], values));
    log_notice("%s", line.text);
}

struct figure_visitor *figure_log(void)
{
    static struct figure_visitor log = {.visit = figure_log_visit};

    return &log;
}
