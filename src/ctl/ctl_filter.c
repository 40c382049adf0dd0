#include "ctl/ctl_filter.h"

#include <ctype.h>
#include <string.h>

#include "ctl/ctl_memory.h"

#define KEY_BYTES    32
#define NUMBER_BYTES 24

const struct ctl_option ctl_filter_options[] = {
    {"listener", "NAME", CTL_VALUE_LISTENER, "of this listener", 0},
    {"upstream", "NAME", CTL_VALUE_UPSTREAM, "with a server of this upstream", 0},
    {"server", "UPSTREAM/SERVER", CTL_VALUE_SERVER, "with this server", 0},
    {"client", "CIDR", CTL_VALUE_TEXT, "of clients in this network, such as 10.0.0.0/8", 0},
    {"loop", "NAME", CTL_VALUE_LOOP, "on this loop", 0},
    {"min-age", "DURATION", CTL_VALUE_DURATION, "at least this old", 0},
    {"min-idle", "DURATION", CTL_VALUE_DURATION, "idle for at least this time", 0},
    {"min-bytes", "BYTES", CTL_VALUE_BYTES, "with at least this many bytes moved", 0},
    {NULL, NULL, 0, NULL, 0},
};

bool ctl_filter_is_given(const struct ctl_arguments *a)
{
    for (const struct ctl_option *o = ctl_filter_options; o->name; o++)
        if (ctl_arguments_has(a, o->name))
            return true;
    return false;
}

/* The interface's key for an option: min_age for --min-age. */
static const char *ctl_filter_key(char *key, const char *name)
{
    size_t i;

    for (i = 0; i < KEY_BYTES - 1 && name[i]; i++)
        key[i] = name[i] == '-' ? '_' : name[i];
    key[i] = '\0';
    return key;
}

void ctl_filter_put_argument(FILE *out, const char *key, const char *value)
{
    fprintf(out, "&%s=", key);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        fprintf(out, isalnum(*c) || strchr("-._~", *c) ? "%c" : "%%%02X", *c);
}

void ctl_filter_put_query(FILE *out, const struct ctl_arguments *a)
{
    char key[KEY_BYTES], number[NUMBER_BYTES];

    for (const struct ctl_option *o = ctl_filter_options; o->name; o++) {
        const char *value = ctl_arguments_value(a, o->name), *text = value;

        if (!value)
            continue;
        if (o->kind == CTL_VALUE_BYTES) {
            snprintf(number, sizeof(number), "%lld", (long long)ctl_value_number(o->kind, value));
            text = number;
        }
        ctl_filter_put_argument(out, ctl_filter_key(key, o->name), text);
    }
}

json_t *ctl_filter_body(const struct ctl_arguments *a)
{
    json_t *body = ctl_memory_need(json_object());
    char key[KEY_BYTES];

    for (const struct ctl_option *o = ctl_filter_options; o->name; o++) {
        const char *value = ctl_arguments_value(a, o->name);
        json_t *field;

        if (!value)
            continue;
        field = o->kind == CTL_VALUE_BYTES ? json_integer(ctl_value_number(o->kind, value))
                                           : json_string(value);
        ctl_memory_need(json_object_set_new(body, ctl_filter_key(key, o->name), field) == 0 ? body
                                                                                            : NULL);
    }
    return body;
}
