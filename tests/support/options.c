#include "support/options.h"

#include <check.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "option/option.h"
#include "upstream/upstream.h"

struct options options;
static struct arena *arena;

void options_setup(void)
{
    ck_assert_int_eq(arena_create(&arena), 0);
}

void options_teardown(void)
{
    arena_release(arena);
}

struct option_value options_value(const struct option *o, const char *key, const char *text)
{
    struct option_value v = {.key = key, .text = text, .conf = &options.conf, .arena = arena};

    memset(&options.conf, 0, sizeof(options.conf));
    if (option_find(OPTION_UPSTREAM, o->key) == o)
        options.conf.upstream.servers = options.servers;
    if (option_find(OPTION_LISTEN, o->key) == o)
        options.conf.listener.routes = options.routes;
    return v;
}

int options_try(enum option_section section, const char *key, const char *text)
{
    const struct option *o = option_find(section, key);
    struct option_value v;

    ck_assert_ptr_nonnull(o);
    v = options_value(o, key, text);
    return option_set(o, &v);
}
