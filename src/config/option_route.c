#include "config/option_route.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "config/diagnostics.h"
#include "config/option_kind.h"
#include "listen/listener.h"
#include "tls/server_name.h"

#define BLANKS             " \t"
#define ARROW              "->"
#define SNI                "sni:"
#define ALPN               "alpn:"
#define PROTOCOL_MAX_BYTES 255

static bool option_route_has(const char *const *list, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

static int option_route_add_name(struct option_value *v, struct route_conf *route, const char *text)
{
    char name[SERVER_NAME_BYTES];
    char *copy;

    if (server_name_read_pattern(name, text, strlen(text)) < 0)
        return option_refuse(v, "%s is not a host name, or '*.' and a host name", QUOTE_TEXT(text));
    if (option_route_has(route->names, route->n_names, name))
        return option_refuse(v, "%s is given twice", QUOTE_TEXT(text));
    copy = arena_text(v->arena, name, strlen(name));
    if (!copy)
        return -ENOMEM;
    route->names[route->n_names++] = copy;
    return 0;
}

static int option_route_add_protocol(struct option_value *v, struct route_conf *route,
                                     const char *text)
{
    size_t len = strlen(text);

    if (len == 0 || len > PROTOCOL_MAX_BYTES)
        return option_refuse(v, "a protocol has 1 to %d bytes, as in alpn:h2", PROTOCOL_MAX_BYTES);
    if (option_route_has(route->protocols, route->n_protocols, text))
        return option_refuse(v, "%s is given twice", QUOTE_TEXT(text));
    route->protocols[route->n_protocols++] = text;
    return 0;
}

static int option_route_add_pattern(struct option_value *v, struct route_conf *route,
                                    const char *word)
{
    if (strncmp(word, SNI, sizeof(SNI) - 1) == 0)
        return option_route_add_name(v, route, word + sizeof(SNI) - 1);
    if (strncmp(word, ALPN, sizeof(ALPN) - 1) == 0)
        return option_route_add_protocol(v, route, word + sizeof(ALPN) - 1);
    return option_refuse(v, "%s is not known", QUOTE_TEXT(word));
}

static int option_route_set_upstream(struct option_value *v, struct route_conf *route, char *name,
                                     const char *more)
{
    if (!name)
        return option_refuse(v, "no '-> UPSTREAM' at the end");
    if (more)
        return option_refuse(v, "%s follows the upstream", QUOTE_TEXT(more));
    if (!option_kind_is_name(name))
        return option_refuse(v, "%s is not the name of an upstream", QUOTE_TEXT(name));
    for (char *c = name; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    route->upstream = name;
    return 0;
}

/* Read ${route} from ${list}, a copy of the value; modifies ${list}. */
static int option_route_read(struct option_value *v, struct route_conf *route, char *list)
{
    char *next, *word = strtok_r(list, BLANKS, &next);
    int rc;

    for (; word && strcmp(word, ARROW) != 0; word = strtok_r(NULL, BLANKS, &next)) {
        rc = option_route_add_pattern(v, route, word);
        if (rc < 0)
            return rc;
    }
    word = word ? strtok_r(NULL, BLANKS, &next) : NULL;
    rc = option_route_set_upstream(v, route, word, word ? strtok_r(NULL, BLANKS, &next) : NULL);
    if (rc == 0 && route->n_names == 0 && route->n_protocols == 0)
        return option_refuse(v, "no sni: or alpn: (for all other clients set upstream)");
    return rc;
}

static int option_route_set(const struct option *o, struct option_value *v)
{
    struct listener_conf *conf = v->conf;
    size_t len = strlen(v->text);
    struct route_conf route = {
        .id = option_member(o, v->key),
        .names = arena_alloc(v->arena, len, sizeof(route.names[0])), /* more than enough */
        .protocols = arena_alloc(v->arena, len, sizeof(route.protocols[0]))};
    char *list = arena_text(v->arena, v->text, len);
    int rc;

    if (!list || !route.names || !route.protocols)
        return -ENOMEM;
    if (!option_kind_is_name(route.id))
        return option_refuse(v, "the ID is not a name of 1 to %d characters",
                             OPTION_KIND_NAME_BYTES);
    rc = option_route_read(v, &route, list);
    if (rc == 0)
        conf->routes[conf->n_routes++] = route;
    return rc;
}

const struct option_kind option_route = {option_route_set, "", 0, NULL};
