#include "option/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "option/option_internal.h"

/* Most files that share the rows of a section. */
#define OPTION_PARTS 4

static const struct {
    const char *name;
    const char *title;
    bool named;
    const struct option_rows *rows[OPTION_PARTS]; /* in order; NULL: no more */
} sections[OPTION_SECTIONS] = {
    [OPTION_REACTORD] = {"reactord", "[reactord]", false, {&option_process_reactord}},
    [OPTION_BOSS] = {"boss", "[boss]", false, {&option_process_boss}},
    [OPTION_WORKER] = {"worker", "[worker]", false, {&option_process_worker}},
    [OPTION_EXECUTOR] = {"executor", "[executor]", false, {&option_process_executor}},
    [OPTION_HANDSHAKE] = {"handshake", "[handshake]", false, {&option_process_handshake}},
    [OPTION_ADMIN] = {"admin", "[admin]", false, {&option_admin}},
    [OPTION_LISTEN] = {"listen",
                       "[listen NAME]",
                       true,
                       {&option_listen, &option_fault, &option_listen_rest, &option_listen_socket}},
    [OPTION_UPSTREAM] = {"upstream",
                         "[upstream NAME]",
                         true,
                         {&option_upstream, &option_spare, &option_upstream_rest,
                          &option_upstream_socket}},
    [OPTION_TLS] = {"tls", "[tls NAME]", true, {&option_tls}},
    [OPTION_RESOLVER] = {"resolver", "[resolver NAME]", true, {&option_resolver}},
    [OPTION_LIMITS] = {"limits", "[limits NAME]", true, {&option_limits}},
    [OPTION_ACCESS_LOG] = {"access_log", "[access_log NAME]", true, {&option_access_log}},
};

const struct option *option_row(enum option_section section, unsigned i)
{
    for (unsigned p = 0; p < OPTION_PARTS && sections[section].rows[p]; p++) {
        const struct option_rows *rows = sections[section].rows[p];

        if (i < rows->n)
            return &rows->list[i];
        i -= rows->n;
    }
    return NULL;
}

static size_t option_family_len(const struct option *o)
{
    return strcspn(o->key, ".") + 1;
}

bool option_matches(const struct option *o, const char *key)
{
    if ((o->flags & OPTION_FAMILY) != 0)
        return strncmp(o->key, key, option_family_len(o)) == 0;
    return strcmp(o->key, key) == 0;
}

const char *option_member(const struct option *o, const char *key)
{
    MUST((o->flags & OPTION_FAMILY) != 0 && option_matches(o, key));
    return key + option_family_len(o);
}

const struct option *option_find(enum option_section section, const char *key)
{
    const struct option *o;

    for (unsigned i = 0; (o = option_row(section, i)) != NULL; i++)
        if (option_matches(o, key))
            break;
    return o;
}

const char *option_applies_text(enum option_applies applies)
{
    switch (applies) {
    case OPTION_LIVE: return "live";
    case OPTION_NEW_CONNECTIONS: return "new connections";
    case OPTION_UPGRADE: return "upgrade";
    }
    MUST(!"an enum option_applies");
    return NULL;
}

const char *option_section_name(enum option_section section)
{
    return sections[section].name;
}

const char *option_section_title(enum option_section section)
{
    return sections[section].title;
}

bool option_section_named(enum option_section section)
{
    return sections[section].named;
}

int option_set(const struct option *o, struct option_value *v)
{
    v->problem[0] = '\0';
    if (v->text[0] != '\0')
        return o->kind->set(o, v);
    if ((o->flags & OPTION_EMPTY) != 0)
        return 0; /* empty: the field stays NULL or false */
    return option_refuse(v, "the value is empty");
}

int option_refuse(struct option_value *v, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(v->problem, sizeof(v->problem), format, args);
    va_end(args);
    return -EINVAL;
}
