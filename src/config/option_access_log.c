#include "config/option_access_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/diagnostics.h"
#include "stats/access_log_format.h"

#define NAMES_BYTES 1024

static void option_access_log_list_names(char *list, size_t size)
{
    const char *name;
    size_t len = 0;

    for (unsigned i = 0; (name = access_log_format_variable(i)) && len < size; i++)
        len += (size_t)snprintf(list + len, size - len, "%s%s", i > 0 ? ", " : "", name);
    MUST(len < size);
}

static int option_access_log_refuse_name(struct option_value *v, const char *name)
{
    char names[NAMES_BYTES] = "";
    struct diagnostics_suggestion near;
    const char *known;

    diagnostics_suggest(&near, name);
    for (unsigned i = 0; (known = access_log_format_variable(i)); i++)
        diagnostics_offer(&near, known);
    if (near.best)
        return option_refuse(v, "there is no variable %s; did you mean '%s'?", QUOTE_TEXT(name),
                             near.best);
    option_access_log_list_names(names, sizeof(names));
    return option_refuse(v, "there is no variable %s; there are %s", QUOTE_TEXT(name), names);
}

/* A format without variables is probably a misspelt name of a format. */
static int option_access_log_refuse_constant(struct option_value *v)
{
    struct diagnostics_suggestion near;

    diagnostics_suggest(&near, v->text);
    diagnostics_offer(&near, "text");
    diagnostics_offer(&near, "json");
    if (near.best)
        return option_refuse(v, "%s is not known; did you mean '%s'?", QUOTE_TEXT(v->text),
                             near.best);
    return option_refuse(v, "%s has no variable in it", QUOTE_TEXT(v->text));
}

static int option_access_log_refuse(struct option_value *v,
                                    const struct access_log_format_problem *problem)
{
    char name[SUGGEST_WORD_BYTES + 2];

    snprintf(name, sizeof(name), "%.*s", (int)problem->len, problem->name);
    switch (problem->kind) {
    case ACCESS_LOG_FORMAT_NO_NAME:
        return *name == '\0' ? option_refuse(v, "the name of a variable is missing at the end")
                             : option_refuse(v, "the name of a variable is missing before %s",
                                             QUOTE_TEXT(name));
    case ACCESS_LOG_FORMAT_UNKNOWN: return option_access_log_refuse_name(v, name);
    case ACCESS_LOG_FORMAT_TWICE: return option_refuse(v, "%s is given twice", QUOTE_TEXT(name));
    case ACCESS_LOG_FORMAT_CONSTANT: return option_access_log_refuse_constant(v);
    case ACCESS_LOG_FORMAT_LONG:
        return option_refuse(v, "a line could be longer than %d bytes", ACCESS_LOG_LINE_BYTES);
    }
    return -EINVAL;
}

static int option_access_log_set_format(const struct option *o, struct option_value *v)
{
    const struct access_log_format *format;
    struct access_log_format_problem problem;
    int rc = access_log_format_parse(&format, v->text, v->arena, &problem);

    if (rc == -EINVAL)
        return option_access_log_refuse(v, &problem);
    if (rc == 0)
        memcpy(option_field(o, v), &format, sizeof(format));
    return rc;
}

const struct option_kind option_access_log_format = {option_access_log_set_format, "", 0, NULL};
