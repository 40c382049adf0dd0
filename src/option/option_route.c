#include "option/option_route.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/parse.h"
#include "option/acl_parser.h"
#include "option/option_bytes.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "tls/server_name.h"

_Static_assert(ACL_PARSER_PROBLEM_BYTES <= OPTION_PROBLEM_BYTES, "problems are handed on");

#define BLANKS             " \t"
#define ARROW              "->"
#define PROTOCOL_MAX_BYTES 255

/* As client_hello_timeout. */
#define OPTION_ROUTE_AFTER_MAX_NS (3600 * NS_PER_S)

/* First bytes of a TLS record with a handshake message. */
static const uint8_t tls_record[] = {0x16, 0x03};

/* ---- words ---- */

/* Length of the word at ${text}: up to a blank that is in no quotes. 0: a quote is missing. */
static size_t option_route_word_length(const char *text)
{
    size_t n = 0;

    while (text[n] != '\0' && !strchr(BLANKS, text[n])) {
        const char *end = text[n] == '"' ? strchr(text + n + 1, '"') : text + n;

        if (!end)
            return 0;
        n = (size_t)(end - text) + 1;
    }
    return n;
}

/* Cut the next word off ${rest}; NULL: none is left. */
static char *option_route_next(char **rest)
{
    char *word = *rest + strspn(*rest, BLANKS);
    size_t n = option_route_word_length(word);

    if (*word == '\0')
        return NULL;
    if (n == 0)
        n = strlen(word);
    *rest = word + n + (word[n] != '\0');
    word[n] = '\0';
    return word;
}

/* ---- names and protocols ---- */

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

/* ---- addresses ---- */

static int option_route_add_client(struct option_value *v, struct route_conf *route,
                                   const char *text)
{
    struct cidr blocks[ACL_PARSER_BLOCKS];
    struct cidr_list *clients = &route->clients;
    int n = acl_parser_parse(blocks, text, v->problem);

    if (n < 0)
        return -EINVAL;
    for (int i = 0; i < n; i++) {
        for (unsigned j = 0; j < clients->n; j++)
            if (cidr_covers(&clients->list[j], &blocks[i]) ||
                cidr_covers(&blocks[i], &clients->list[j]))
                return option_refuse(v, "%s is in another src: of the route, or has one in it",
                                     QUOTE_TEXT(text));
    }
    memcpy(clients->list + clients->n, blocks, (size_t)n * sizeof(blocks[0]));
    clients->n += (unsigned)n;
    return 0;
}

/* ---- versions of TLS ---- */

static int option_route_add_tls(struct option_value *v, struct route_conf *route, const char *text)
{
    static const struct option_word words[] = {
        {"no", ROUTE_TLS_NO}, {"1.2", ROUTE_TLS_1_2}, {"1.3", ROUTE_TLS_1_3}, {NULL, 0}};

    for (const struct option_word *w = words; w->word; w++) {
        if (strcmp(w->word, text) != 0)
            continue;
        if (route->tls & w->value)
            return option_refuse(v, "tls:%s is given twice", text);
        route->tls |= w->value;
        return 0;
    }
    return option_refuse(v, "tls: has no %s (no, 1.2 or 1.3)", QUOTE_TEXT(text));
}

/* ---- first bytes ---- */

static int option_route_read_hex(uint8_t *out, struct option_value *v, const char *text)
{
    size_t len = strlen(text);

    if (len % 2 != 0 || text[strspn(text, "0123456789abcdefABCDEF")] != '\0')
        return option_refuse(v,
                             "%s is neither a text in double quotes, as in first:\"SSH-\", nor "
                             "pairs of hex digits",
                             QUOTE_TEXT(text));
    for (size_t i = 0; i < len; i += 2)
        out[i / 2] = (uint8_t)(parse_hex_digit(text[i]) << 4 | parse_hex_digit(text[i + 1]));
    return (int)(len / 2);
}

/* Return the number of bytes that ${text} stands for. */
static int option_route_read_first(uint8_t *out, struct option_value *v, const char *text)
{
    size_t len = strlen(text);
    char *inner;

    if (*text != '"')
        return option_route_read_hex(out, v, text);
    if (len < 2 || text[len - 1] != '"')
        return option_refuse(v, "a quote of first: is missing, or followed by a text");
    inner = arena_text(v->arena, text + 1, len - 2);
    return inner ? option_bytes_read(out, v, inner) : -ENOMEM;
}

static bool option_route_begins(const struct route_first *first, const uint8_t *with, size_t n)
{
    return memcmp(first->at, with, first->n < n ? first->n : n) == 0;
}

static int option_route_add_first(struct option_value *v, struct route_conf *route,
                                  const char *text)
{
    uint8_t *bytes = arena_alloc(v->arena, strlen(text) + 1, 1);
    int n = bytes ? option_route_read_first(bytes, v, text) : -ENOMEM;

    if (n < 0)
        return n;
    if (n == 0 || n > ROUTE_FIRST_BYTES)
        return option_refuse(v, "first: has %d bytes (1 to %d)", n, ROUTE_FIRST_BYTES);
    for (unsigned i = 0; i < route->n_first; i++)
        if (option_route_begins(&route->first[i], bytes, (size_t)n))
            return option_refuse(v, "%s begins as another first: of the route", QUOTE_TEXT(text));
    route->first[route->n_first++] = (struct route_first){bytes, (size_t)n};
    return 0;
}

/* ---- silence ---- */

static int option_route_set_after(struct option_value *v, struct route_conf *route,
                                  const char *text)
{
    int64_t ns;

    if (parse_duration(&ns, text, OPTION_ROUTE_AFTER_MAX_NS) < 0 || ns < NS_PER_MS)
        return option_refuse(v, "%s is not a time from 1ms to 1h, as in after:200ms",
                             QUOTE_TEXT(text));
    if (route->after_ns > 0)
        return option_refuse(v, "after: is given twice");
    route->after_ns = ns;
    return 0;
}

/* ---- conditions ---- */

static int option_route_refuse_condition(struct option_value *v, const char *word)
{
    static const struct {
        const char *word, *here;
    } foreign[] = {
        {"req.ssl_sni", "sni:NAME"},
        {"req_ssl_sni", "sni:NAME"},
        {"ssl_preread_server_name", "sni:NAME"},
        {"server_name", "sni:NAME"},
        {"req.ssl_alpn", "alpn:PROTOCOL"},
        {"ssl_preread_alpn_protocols", "alpn:PROTOCOL"},
        {"req.ssl_ver", "tls:1.2"},
        {"ssl_preread_protocol", "tls:1.2"},
        {"req.payload", "first:\"TEXT\""},
        {"payload", "first:\"TEXT\""},
        {"WAIT_END", "after:TIME"},
        {"req.len", "after:TIME"},
        {"remote_addr", "src:BLOCK"},
        {"geo", "src:BLOCK"},
    };
    const char *name = *word == '$' ? word + 1 : word;
    size_t len = strcspn(name, ":=(");

    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        if (strlen(foreign[i].word) == len && memcmp(foreign[i].word, name, len) == 0) {
            v->foreign = true;
            return option_refuse(v, "%s is not known; here it is '%s'", QUOTE_TEXT(word),
                                 foreign[i].here);
        }
    return option_refuse(v, "%s is not known", QUOTE_TEXT(word));
}

static int option_route_add_condition(struct option_value *v, struct route_conf *route,
                                      const char *word)
{
    static const struct {
        const char *prefix;
        int (*add)(struct option_value *v, struct route_conf *route, const char *text);
    } kinds[] = {
        {"sni:", option_route_add_name},    {"alpn:", option_route_add_protocol},
        {"src:", option_route_add_client},  {"tls:", option_route_add_tls},
        {"first:", option_route_add_first}, {"after:", option_route_set_after},
    };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t len = strlen(kinds[i].prefix);

        if (strncmp(word, kinds[i].prefix, len) == 0)
            return kinds[i].add(v, route, word + len);
    }
    return option_route_refuse_condition(v, word);
}

/* A condition of ${route} that asks for bytes of the client. */
static const char *option_route_asks_for(const struct route_conf *route)
{
    return route->n_names > 0       ? "sni:"
           : route->n_protocols > 0 ? "alpn:"
           : route->n_first > 0     ? "first:"
                                    : "tls:";
}

/* Refuse conditions that never hold together. */
static int option_route_check(struct option_value *v, const struct route_conf *route)
{
    const char *named = route->n_names > 0 ? "sni:" : "alpn:";
    bool needs_tls = route_conf_needs_tls(route);

    if (route->after_ns > 0 && (needs_tls || route->n_first > 0 || route->tls != 0))
        return option_refuse(v,
                             "after: is for clients that send nothing, so it never holds together "
                             "with %s",
                             option_route_asks_for(route));
    if ((route->tls & ROUTE_TLS_NO) != 0 && (route->n_names > 0 || route->n_protocols > 0))
        return option_refuse(v, "tls:no never holds together with %s", named);
    for (unsigned i = 0; i < route->n_first; i++) {
        bool is_tls = option_route_begins(&route->first[i], tls_record, sizeof(tls_record));

        if (needs_tls && !is_tls)
            return option_refuse(v,
                                 "first: %u of the route does not begin as TLS (1603), so it "
                                 "never holds together with %s",
                                 i + 1, route->n_names + route->n_protocols > 0 ? named : "tls:");
        if (route->tls == ROUTE_TLS_NO && is_tls && route->first[i].n >= sizeof(tls_record))
            return option_refuse(v,
                                 "first: %u of the route begins as TLS (1603), so it never "
                                 "holds together with tls:no",
                                 i + 1);
    }
    return 0;
}

/* ---- the option ---- */

/* Read ${text}, as in 12.5%, in hundredths of a percent; 0: it is none of 0.01% to 100%. */
static unsigned option_route_read_share(const char *text)
{
    unsigned share = 0, decimals = 0;
    bool has_dot = false;

    for (; isdigit((unsigned char)*text) || (*text == '.' && !has_dot); text++) {
        if (*text == '.') {
            has_dot = true;
            continue;
        }
        share = share * 10 + (unsigned)(*text - '0');
        decimals += has_dot;
        if (share > ROUTE_SHARE_ALL)
            return 0;
    }
    if (strcmp(text, "%") != 0 || decimals > 2 || (has_dot && decimals == 0))
        return 0;
    for (; decimals < 2; decimals++)
        share *= 10;
    return share <= ROUTE_SHARE_ALL ? share : 0;
}

static int option_route_check_name(struct option_value *v, char *name)
{
    if (!option_kind_is_name(name))
        return option_refuse(v, "%s is not the name of an upstream", QUOTE_TEXT(name));
    option_kind_lower(name);
    return 0;
}

static int option_route_add_share(struct option_value *v, struct route_conf *route, char *name,
                                  const char *text)
{
    unsigned share = text ? option_route_read_share(text) : 0;
    unsigned before = route->n_shares > 0 ? route->shares[route->n_shares - 1].until : 0;

    if (!text)
        return option_refuse(v, "%s has no share, as in %s 10%%", QUOTE_TEXT(name), name);
    if (share == 0)
        return option_refuse(v, "%s is not a share from 0.01%% to 100%%", QUOTE_TEXT(text));
    if (strcmp(name, OPTION_ROUTE_REFUSE) == 0)
        return option_refuse(v, "'refuse' stands alone, without a share");
    for (unsigned i = 0; i < route->n_shares; i++)
        if (strcmp(route->shares[i].upstream, name) == 0)
            return option_refuse(v, "%s is given twice", QUOTE_TEXT(name));
    route->shares[route->n_shares++] = (struct route_share){name, before + share};
    return 0;
}

static int option_route_check_shares(struct option_value *v, const struct route_conf *route)
{
    unsigned sum = route->n_shares > 0 ? route->shares[route->n_shares - 1].until : 0;

    if (route->n_shares == 0 || sum == ROUTE_SHARE_ALL)
        return 0;
    return option_refuse(v, "the shares add up to %u.%02u%%, not to 100%%", sum / 100, sum % 100);
}

/* Read one upstream, or several with commas between and their shares. */
static int option_route_set_targets(struct option_value *v, struct route_conf *route, char *list)
{
    bool is_list = strchr(list, ',');
    int rc = 0;

    if (list[strspn(list, BLANKS)] == '\0')
        return option_refuse(v, "no '-> UPSTREAM' at the end");
    while (rc == 0 && list) {
        char *item = option_kind_next_item(&list), *name = option_route_next(&item), *share, *more;

        if (!name)
            return option_refuse(v, "an upstream is missing beside a comma");
        share = option_route_next(&item);
        more = option_route_next(&item);
        if (more || (share && !strchr(share, '%')))
            return option_refuse(v, "%s follows the upstream", QUOTE_TEXT(more ? more : share));
        rc = option_route_check_name(v, name);
        if (rc == 0 && (is_list || share))
            rc = option_route_add_share(v, route, name, share);
        if (!route->upstream && strcmp(name, OPTION_ROUTE_REFUSE) != 0)
            route->upstream = name;
    }
    return rc < 0 ? rc : option_route_check_shares(v, route);
}

static bool option_route_is_conditional(const struct route_conf *route)
{
    return route->n_names + route->n_protocols + route->clients.n + route->n_first > 0 ||
           route->tls != 0 || route->after_ns > 0;
}

/* Read ${route} from ${list}, a copy of the value; modifies ${list}. */
static int option_route_read(struct option_value *v, struct route_conf *route, char *list)
{
    char *word = option_route_next(&list);
    int rc;

    for (; word && strcmp(word, ARROW) != 0; word = option_route_next(&list)) {
        rc = option_route_add_condition(v, route, word);
        if (rc < 0)
            return rc;
    }
    rc = word ? option_route_set_targets(v, route, list)
              : option_refuse(v, "no '-> UPSTREAM' at the end");
    if (rc == 0 && !option_route_is_conditional(route))
        return option_refuse(v, "no condition, such as sni: or src: (for all other clients set "
                                "upstream)");
    return rc < 0 ? rc : option_route_check(v, route);
}

/* Make room for as many values as ${text} can have. */
static int option_route_alloc(struct option_value *v, struct route_conf *route, size_t len)
{
    route->names = arena_alloc(v->arena, len, sizeof(route->names[0]));
    route->protocols = arena_alloc(v->arena, len, sizeof(route->protocols[0]));
    route->first = arena_alloc(v->arena, len, sizeof(route->first[0]));
    route->clients.list = arena_alloc(v->arena, len, sizeof(route->clients.list[0]));
    route->shares = arena_alloc(v->arena, len, sizeof(route->shares[0]));
    return route->shares && route->names && route->protocols && route->first && route->clients.list
               ? 0
               : -ENOMEM;
}

static int option_route_set(const struct option *o, struct option_value *v)
{
    struct listener_conf *conf = v->conf;
    struct route_conf route = {.id = option_member(o, v->key)};
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    int rc = list ? option_route_alloc(v, &route, strlen(v->text)) : -ENOMEM;

    if (rc < 0)
        return rc;
    if (!option_kind_is_name(route.id))
        return option_refuse(v, "the ID is not a name of 1 to %d characters",
                             OPTION_KIND_NAME_BYTES);
    rc = option_route_read(v, &route, list);
    if (rc == 0)
        conf->routes[conf->n_routes++] = route;
    return rc;
}

const struct option_kind option_route = {option_route_set, "", 0, NULL};
