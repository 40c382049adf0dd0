#include "option/option_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/parse.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "net/address.h"
#include "net/netns.h"
#include "net/sock.h"

/* Most source addresses of an upstream. */
#define OPTION_SOCKET_SOURCES 64

#define OPTION_SOCKET_PORT_MIN 1024

static char *option_socket_copy_list(const struct option_value *v)
{
    return arena_text(v->arena, v->text, strlen(v->text));
}

/* Accept whole seconds only, because the kernel counts seconds. */
static int option_socket_parse_seconds(struct option_value *v, unsigned *out_s, const char *item,
                                       int max_s)
{
    int64_t ns;

    if (parse_duration(&ns, item, INT64_MAX) == -EINVAL)
        return option_refuse(v, "%s is not a number with a unit", QUOTE_TEXT(item));
    if (parse_duration(&ns, item, max_s * NS_PER_S) < 0 || ns < NS_PER_S)
        return option_refuse(v, "%s is not 1s to %ds", QUOTE_TEXT(item), max_s);
    if (ns % NS_PER_S != 0)
        return option_refuse(v, "%s is not a number of whole seconds", QUOTE_TEXT(item));
    *out_s = (unsigned)(ns / NS_PER_S);
    return 0;
}

static int option_socket_parse_count(struct option_value *v, unsigned *out, const char *item)
{
    uint64_t n;

    if (parse_uint(&n, item, SOCK_OPTIONS_KEEPALIVE_COUNT) < 0 || n == 0)
        return option_refuse(v, "%s is not a count from 1 to %d", QUOTE_TEXT(item),
                             SOCK_OPTIONS_KEEPALIVE_COUNT);
    *out = (unsigned)n;
    return 0;
}

static int option_socket_set_keepalive(const struct option *o, struct option_value *v)
{
    struct sock_keepalive keepalive = {0};
    char *list = option_socket_copy_list(v);
    int rc = 0;

    if (!list)
        return -ENOMEM;
    if (strcmp(list, "off") != 0)
        rc = option_socket_parse_seconds(v, &keepalive.idle_s, option_kind_next_item(&list),
                                         SOCK_OPTIONS_KEEPALIVE_SECONDS);
    else
        list = NULL;
    if (rc == 0 && list)
        rc = option_socket_parse_seconds(v, &keepalive.interval_s, option_kind_next_item(&list),
                                         SOCK_OPTIONS_KEEPALIVE_SECONDS);
    if (rc == 0 && list)
        rc = option_socket_parse_count(v, &keepalive.count, option_kind_next_item(&list));
    if (rc == 0 && list)
        rc = option_refuse(v, "%s has too many items", QUOTE_TEXT(v->text));
    if (rc == 0)
        memcpy(option_field(o, v), &keepalive, sizeof(keepalive));
    return rc;
}

static bool option_socket_is_any(const struct address *a)
{
    if (a->u.sa.sa_family == AF_INET)
        return a->u.in.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&a->u.in6.sin6_addr);
}

static bool option_socket_is_of_many(const struct address *a)
{
    if (a->u.sa.sa_family == AF_INET)
        return IN_MULTICAST(ntohl(a->u.in.sin_addr.s_addr)) ||
               a->u.in.sin_addr.s_addr == htonl(INADDR_BROADCAST);
    return IN6_IS_ADDR_MULTICAST(&a->u.in6.sin6_addr);
}

static bool option_socket_lacks_zone(const struct address *a)
{
    return a->u.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a->u.in6.sin6_addr) &&
           a->u.in6.sin6_scope_id == 0 && a->u.zoned.zone[0] == '\0';
}

static int option_socket_parse_source(struct option_value *v, struct address *out, const char *item)
{
    struct address found[2];
    int rc;

    if (*item == '\0')
        return option_refuse(v, "an address is missing beside a comma");
    rc = address_parse_host(out, item);
    if (rc == -ENOENT)
        return option_refuse(v, "%s is a host name, and a source needs a numeric address",
                             QUOTE_TEXT(item));
    if (rc < 0 && address_parse(found, ARRAY_LEN(found), item) > 0 && !address_is_unix(&found[0]))
        return option_refuse(v, "%s has a port, and each connection gets its own",
                             QUOTE_TEXT(item));
    if (rc < 0 || option_socket_is_any(out))
        return option_refuse(v, "%s is not the address of a host", QUOTE_TEXT(item));
    if (option_socket_is_of_many(out))
        return option_refuse(v, "%s is a multicast or broadcast address", QUOTE_TEXT(item));
    if (option_socket_lacks_zone(out))
        return option_refuse(v, "%s is an address of a link, and needs a zone such as %%eth0",
                             QUOTE_TEXT(item));
    return 0;
}

static int option_socket_set_source(const struct option *o, struct option_value *v)
{
    struct sock_connect_conf *conf = option_field(o, v);
    char *list = option_socket_copy_list(v);
    struct address a;
    struct sock_sources *sources =
        arena_alloc(v->arena, 1, sizeof(*sources) + OPTION_SOCKET_SOURCES * sizeof(a));

    if (!list || !sources)
        return -ENOMEM;
    while (list) {
        const char *item = option_kind_next_item(&list);
        int rc = option_socket_parse_source(v, &a, item);

        if (rc < 0)
            return rc;
        for (unsigned i = 0; i < sources->n; i++)
            if (address_equal(&sources->list[i], &a))
                return option_refuse(v, "%s is there twice", QUOTE_TEXT(item));
        if (sources->n == OPTION_SOCKET_SOURCES)
            return option_refuse(v, "too many addresses, at most %d", OPTION_SOCKET_SOURCES);
        sources->list[sources->n++] = a;
    }
    conf->sources = sources;
    return 0;
}

/* The lower ports are of servers, and need privileges. */
static int option_socket_set_ports(const struct option *o, struct option_value *v)
{
    const char *dash = strchr(v->text, '-');
    struct sock_ports *ports = arena_alloc(v->arena, 1, sizeof(*ports));
    char *low = option_socket_copy_list(v);
    uint64_t first, last;

    if (!low || !ports)
        return -ENOMEM;
    low[strcspn(low, "-")] = '\0';
    if (!dash || parse_uint(&first, low, UINT16_MAX) < 0 ||
        parse_uint(&last, dash + 1, UINT16_MAX) < 0 || first < OPTION_SOCKET_PORT_MIN)
        return option_refuse(v, "%s is not a range of ports from %d to %d", QUOTE_TEXT(v->text),
                             OPTION_SOCKET_PORT_MIN, UINT16_MAX);
    if (last < first)
        return option_refuse(v, "the range %s goes down", QUOTE_TEXT(v->text));
    ports->turn = (unsigned)hash_seed(); /* not those of before a reload */
    ports->first = (uint16_t)first;
    ports->n = (unsigned)(last - first + 1);
    memcpy(option_field(o, v), &ports, sizeof(ports));
    return 0;
}

static int option_socket_set_seconds(const struct option *o, struct option_value *v)
{
    unsigned s = 0;
    int rc = 0;

    if (strcmp(v->text, "0") != 0)
        rc = option_socket_parse_seconds(v, &s, v->text, (int)(o->max / NS_PER_S));
    if (rc == 0)
        memcpy(option_field(o, v), &s, sizeof(s));
    return rc;
}

static int option_socket_set_mark(const struct option *o, struct option_value *v)
{
    const char *digits = v->text;
    unsigned long mark;
    int base = 10;

    if (strncmp(digits, "0x", 2) == 0) {
        digits += 2;
        base = 16;
    }
    if (digits[strspn(digits, base == 16 ? "0123456789abcdefABCDEF" : "0123456789")] != '\0' ||
        *digits == '\0')
        return option_refuse(v, "%s is not a number", QUOTE_TEXT(v->text));
    errno = 0;
    mark = strtoul(digits, NULL, base);
    if (errno == ERANGE || mark > UINT32_MAX)
        return option_refuse(v, "%s is out of range", QUOTE_TEXT(v->text));
    memcpy(option_field(o, v), &(unsigned){(unsigned)mark}, sizeof(unsigned));
    return 0;
}

/* Names of code points. Sources: RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622. */
static bool option_socket_find_dscp(unsigned *out, const char *name)
{
    const char *digits = name + 2;
    size_t len = strlen(name);

    if (strncmp(name, "cs", 2) == 0 && len == 3 && digits[0] >= '0' && digits[0] <= '7')
        *out = 8 * (unsigned)(digits[0] - '0');
    else if (strncmp(name, "af", 2) == 0 && len == 4 && digits[0] >= '1' && digits[0] <= '4' &&
             digits[1] >= '1' && digits[1] <= '3')
        *out = 8 * (unsigned)(digits[0] - '0') + 2 * (unsigned)(digits[1] - '0');
    else if (strcmp(name, "ef") == 0)
        *out = 46;
    else if (strcmp(name, "va") == 0)
        *out = 44;
    else if (strcmp(name, "le") == 0)
        *out = 1;
    else
        return false;
    return true;
}

static int option_socket_set_dscp(const struct option *o, struct option_value *v)
{
    unsigned dscp;
    uint64_t n;
    int rc;

    if (!option_socket_find_dscp(&dscp, v->text)) {
        rc = parse_uint(&n, v->text, SOCK_OPTIONS_DSCP_MAX);
        if (rc < 0)
            return option_refuse(v, rc == -EINVAL ? "%s is not a DSCP" : "%s is out of range",
                                 QUOTE_TEXT(v->text));
        dscp = (unsigned)n;
    }
    memcpy(option_field(o, v), &dscp, sizeof(dscp));
    return 0;
}

static int option_socket_set_name(const struct option *o, struct option_value *v,
                                  const char *refused)
{
    char name[SOCK_OPTIONS_NAME_BYTES] = "";

    if (strlen(v->text) >= sizeof(name))
        return option_refuse(v, "%s is too long, at most %d characters", QUOTE_TEXT(v->text),
                             SOCK_OPTIONS_NAME_BYTES - 1);
    if (strpbrk(v->text, refused) || strcmp(v->text, ".") == 0 || strcmp(v->text, "..") == 0)
        return option_refuse(v, "%s is not a name", QUOTE_TEXT(v->text));
    memcpy(name, v->text, strlen(v->text));
    memcpy(option_field(o, v), name, sizeof(name));
    return 0;
}

/* Source: Linux, dev_valid_name() */
static int option_socket_set_interface(const struct option *o, struct option_value *v)
{
    return option_socket_set_name(o, v, "/: \t\v\f\r\n,");
}

static int option_socket_set_congestion(const struct option *o, struct option_value *v)
{
    return option_socket_set_name(o, v, "/. \t\v\f\r\n,");
}

static int option_socket_set_namespace(const struct option *o, struct option_value *v)
{
    const char *text = v->text;

    if (text[0] == '/')
        return option_kind_path.set(o, v);
    if (strchr(text, '/') || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return option_refuse(v, "%s is neither a name nor an absolute path", QUOTE_TEXT(text));
    memcpy(option_field(o, v), &text, sizeof(text));
    return 0;
}

static const struct netns *option_socket_netns(const struct option *o, const void *conf)
{
    const char *options = (const char *)conf + o->offset - offsetof(struct sock_options, namespace);

    return ((const struct sock_options *)options)->netns;
}

static bool option_socket_same_netns(const struct option *o, const void *from, const void *to)
{
    return netns_id(option_socket_netns(o, from)) == netns_id(option_socket_netns(o, to));
}

static const struct option_content namespace = {option_socket_same_netns, NULL,
                                                "the network namespace was made anew"};

const struct option_kind option_socket_mark = {option_socket_set_mark, "", sizeof(unsigned), NULL};
const struct option_kind option_socket_dscp = {option_socket_set_dscp, "", sizeof(unsigned), NULL};
const struct option_kind option_socket_seconds = {option_socket_set_seconds, "", sizeof(unsigned),
                                                  NULL};
const struct option_kind option_socket_namespace = {option_socket_set_namespace, "", 0, &namespace};
const struct option_kind option_socket_interface = {option_socket_set_interface, "", 0, NULL};
const struct option_kind option_socket_congestion = {option_socket_set_congestion, "", 0, NULL};
const struct option_kind option_socket_keepalive = {option_socket_set_keepalive, "", 0, NULL};
const struct option_kind option_socket_source = {option_socket_set_source, "", 0, NULL};
const struct option_kind option_socket_ports = {option_socket_set_ports, "", 0, NULL};
