#include "option/option_kind.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/parse.h"
#include "ini/diagnostics.h"
#include "ini/foreign_words.h"

#define BLANKS " \t"

static void option_kind_put_unsigned(const struct option *o, const struct option_value *v,
                                     unsigned value)
{
    memcpy(option_field(o, v), &value, sizeof(value));
}

static void option_kind_put_text(const struct option *o, const struct option_value *v,
                                 const char *text)
{
    memcpy(option_field(o, v), &text, sizeof(text));
}

/* Refuse a number: ${rc} is -EINVAL (not ${what}), or another error (out of range). */
static int option_kind_refuse_number(struct option_value *v, int rc, const char *what)
{
    if (rc == -EINVAL)
        return option_refuse(v, "%s is not %s", QUOTE_TEXT(v->text), what);
    return option_refuse(v, "%s is out of range", QUOTE_TEXT(v->text));
}

static bool option_kind_in_range(const struct option *o, int64_t n)
{
    return (n >= o->min && n <= o->max) || (n == 0 && (o->flags & OPTION_ZERO) != 0);
}

static int option_kind_set_number(const struct option *o, struct option_value *v)
{
    uint64_t n;
    int rc = parse_uint(&n, v->text, (uint64_t)o->max);

    if (rc == 0 && !option_kind_in_range(o, (int64_t)n))
        rc = -ERANGE;
    if (rc < 0)
        return option_kind_refuse_number(v, rc, "a plain decimal number");
    option_kind_put_unsigned(o, v, (unsigned)n);
    return 0;
}

/* Is the value one of option.words? Then it is stored. */
static bool option_kind_put_word(const struct option *o, struct option_value *v)
{
    for (const struct option_word *w = o->words; w->word; w++)
        if (strcmp(w->word, v->text) == 0) {
            option_kind_put_unsigned(o, v, w->value);
            return true;
        }
    return false;
}

static int option_kind_set_number_or_word(const struct option *o, struct option_value *v)
{
    return option_kind_put_word(o, v) ? 0 : option_kind_set_number(o, v);
}

static int option_kind_set_percent(const struct option *o, struct option_value *v)
{
    unsigned n;
    int rc = parse_percent(&n, v->text);

    if (rc == 0 && !option_kind_in_range(o, n))
        rc = -ERANGE;
    if (rc < 0)
        return option_kind_refuse_number(v, rc, "a percentage");
    option_kind_put_unsigned(o, v, n);
    return 0;
}

static int option_kind_set_percent_or_word(const struct option *o, struct option_value *v)
{
    return option_kind_put_word(o, v) ? 0 : option_kind_set_percent(o, v);
}

static int option_kind_set_duration(const struct option *o, struct option_value *v)
{
    int64_t ns;
    int rc = parse_duration(&ns, v->text, o->max);

    if (rc == 0 && !option_kind_in_range(o, ns))
        rc = -ERANGE;
    if (rc < 0)
        return option_kind_refuse_number(v, rc, "a number with a unit");
    memcpy(option_field(o, v), &ns, sizeof(ns));
    return 0;
}

static int option_kind_set_duration_or_never(const struct option *o, struct option_value *v)
{
    const int64_t never = CLOCK_NEVER;

    if (strcmp(v->text, "never") != 0)
        return option_kind_set_duration(o, v);
    memcpy(option_field(o, v), &never, sizeof(never));
    return 0;
}

static int option_kind_read_size(uint64_t *out_bytes, const struct option *o,
                                 struct option_value *v)
{
    int rc = parse_size(out_bytes, v->text, (uint64_t)o->max);

    if (rc == 0 && !option_kind_in_range(o, (int64_t)*out_bytes))
        rc = -ERANGE;
    return rc < 0 ? option_kind_refuse_number(v, rc, "a number of bytes") : 0;
}

static int option_kind_set_size(const struct option *o, struct option_value *v)
{
    uint64_t bytes;
    int rc = option_kind_read_size(&bytes, o, v);

    if (rc == 0)
        option_kind_put_unsigned(o, v, (unsigned)bytes);
    return rc;
}

static int option_kind_set_size_long(const struct option *o, struct option_value *v)
{
    uint64_t bytes;
    int rc = option_kind_read_size(&bytes, o, v);

    if (rc == 0)
        memcpy(option_field(o, v), &bytes, sizeof(bytes));
    return rc;
}

static int option_kind_set_bool(const struct option *o, struct option_value *v)
{
    bool value;

    if (parse_bool(&value, v->text) < 0)
        return option_refuse(v, "%s is neither", QUOTE_TEXT(v->text));
    memcpy(option_field(o, v), &value, sizeof(value));
    return 0;
}

const struct option_word *option_kind_find_word(const struct option *o, struct option_value *v)
{
    struct foreign_words_hint hint;
    struct diagnostics_suggestion near;

    diagnostics_suggest(&near, v->text);
    for (const struct option_word *w = o->words; w->word != NULL; w++) {
        if (strcmp(w->word, v->text) == 0)
            return w;
        diagnostics_offer(&near, w->word);
    }
    v->foreign = foreign_words_hint(&hint, o->key, v->text, strlen(v->text));
    if (v->foreign)
        option_refuse(v, "%s is not known; %s", QUOTE_TEXT(v->text), hint.text);
    else if (near.best)
        option_refuse(v, "%s is not known; did you mean '%s'?", QUOTE_TEXT(v->text), near.best);
    else
        option_refuse(v, "%s is not known", QUOTE_TEXT(v->text));
    return NULL;
}

static int option_kind_set_word(const struct option *o, struct option_value *v)
{
    const struct option_word *w = option_kind_find_word(o, v);

    if (!w)
        return -EINVAL;
    option_kind_put_unsigned(o, v, w->value);
    return 0;
}

/* passwd(5) forbids the colon; directory services use '@' and '\'. */
static int option_kind_set_account(const struct option *o, struct option_value *v)
{
    for (const char *p = v->text; *p != '\0'; p++) {
        if (!isgraph((unsigned char)*p) || *p == ':')
            return option_refuse(v, "%s cannot be an account", QUOTE_TEXT(v->text));
    }
    option_kind_put_text(o, v, v->text);
    return 0;
}

static int option_kind_set_path(const struct option *o, struct option_value *v)
{
    size_t len = strlen(v->text);

    if (v->text[0] != '/')
        return option_refuse(v, "%s is not an absolute path", QUOTE_TEXT(v->text));
    if (v->text[len - 1] == '/')
        return option_refuse(v, "%s is not the path of a file", QUOTE_TEXT(v->text));
    option_kind_put_text(o, v, v->text);
    return 0;
}

char *option_kind_next_item(char **list)
{
    char *item = strsep(list, ",");
    size_t len;

    item += strspn(item, BLANKS);
    for (len = strlen(item); len > 0 && strchr(BLANKS, item[len - 1]); len--)
        ;
    item[len] = '\0';
    return item;
}

bool option_kind_is_name(const char *text)
{
    size_t len = strnlen(text, OPTION_KIND_NAME_BYTES + 1);

    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("_.-", text[i]))
            return false;
    }
    return len >= 1 && len <= OPTION_KIND_NAME_BYTES;
}

void option_kind_lower(char *name)
{
    for (; *name != '\0'; name++)
        *name = (char)tolower((unsigned char)*name); /* as iniparser does */
}

int option_kind_add_name(struct option_names *names, struct option_value *v, char *name)
{
    if (*name == '\0')
        return option_refuse(v, "a name is missing beside a comma");
    if (!option_kind_is_name(name))
        return option_refuse(v, "%s is not a name", QUOTE_TEXT(name));
    option_kind_lower(name);
    for (unsigned i = 0; i < names->n; i++)
        if (strcmp(names->list[i], name) == 0)
            return option_refuse(v, "%s is given twice", QUOTE_TEXT(name));
    if (names->n == names->max)
        return option_refuse(v, "there are more than %u names", names->max);
    names->list[names->n++] = name;
    return 0;
}

static int option_kind_set_name(const struct option *o, struct option_value *v)
{
    char *name;

    if (!option_kind_is_name(v->text))
        return option_refuse(v, "%s is not a name", QUOTE_TEXT(v->text));
    name = arena_text(v->arena, v->text, strlen(v->text));
    if (!name)
        return -ENOMEM;
    option_kind_lower(name);
    option_kind_put_text(o, v, name);
    return 0;
}

const struct option_kind option_kind_number = {option_kind_set_number, "", sizeof(unsigned), NULL};
const struct option_kind option_kind_number_or_word = {option_kind_set_number_or_word, "",
                                                       sizeof(unsigned), NULL};
const struct option_kind option_kind_percent = {option_kind_set_percent, ", in percent",
                                                sizeof(unsigned), NULL};
const struct option_kind option_kind_percent_or_word = {option_kind_set_percent_or_word,
                                                        ", in percent", sizeof(unsigned), NULL};
const struct option_kind option_kind_duration = {
    option_kind_set_duration, ", in us, ms, s, m, h or d", sizeof(int64_t), NULL};
const struct option_kind option_kind_duration_or_never = {
    option_kind_set_duration_or_never, ", in us, ms, s, m, h or d", sizeof(int64_t), NULL};
const struct option_kind option_kind_size = {option_kind_set_size, ", in b, k, m or g",
                                             sizeof(unsigned), NULL};
const struct option_kind option_kind_size_long = {option_kind_set_size_long, ", in b, k, m or g",
                                                  sizeof(uint64_t), NULL};
const struct option_kind option_kind_bool = {option_kind_set_bool, "", sizeof(bool), NULL};
const struct option_kind option_kind_word = {option_kind_set_word, "", sizeof(unsigned), NULL};
const struct option_kind option_kind_account = {option_kind_set_account, "", 0, NULL};
const struct option_kind option_kind_path = {option_kind_set_path, "", 0, NULL};
const struct option_kind option_kind_name = {option_kind_set_name, "", 0, NULL};
