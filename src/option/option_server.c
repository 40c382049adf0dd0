#include "option/option_server.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/parse.h"
#include "option/process_conf.h"
#include "option/option_kind.h"
#include "option/option_network.h"
#include "ini/diagnostics.h"
#include "ini/foreign_words.h"
#include "net/address.h"
#include "upstream/upstream.h"

#define BLANKS          " \t"
#define MAX_CONNECTIONS 1000000
#define MAX_STREAK      1000

#define MIN_INTERVAL_NS (10 * NS_PER_MS)
#define MAX_INTERVAL_NS (3600 * NS_PER_S)

/* No weight=N is given. */
#define NO_WEIGHT UINT_MAX

/* A word behind the address: NAME, or NAME=VALUE. */
struct option_server_word {
    const char *name;
    const char *example; /* of the value; NULL: the word has none */
    int (*set)(struct option_value *v, const struct option_server_word *w,
               struct upstream_server_conf *server, const char *text);
    size_t offset;
    unsigned max;
};

static void *option_server_field(const struct option_server_word *w,
                                 struct upstream_server_conf *server)
{
    return (char *)server + w->offset;
}

static int option_server_set_number(struct option_value *v, const struct option_server_word *w,
                                    struct upstream_server_conf *server, const char *text)
{
    uint64_t number;

    if (parse_uint(&number, text, w->max) < 0 || number == 0)
        return option_refuse(v, "%s is not a %s from 1 to %u", QUOTE_TEXT(text), w->name, w->max);
    *(unsigned *)option_server_field(w, server) = (unsigned)number;
    return 0;
}

static int option_server_set_weight(struct option_value *v, const struct option_server_word *w,
                                    struct upstream_server_conf *server, const char *text)
{
    uint64_t weight;

    if (parse_uint(&weight, text, w->max) < 0)
        return option_refuse(v, "%s is not a weight from 0 to %u", QUOTE_TEXT(text), w->max);
    server->weight = (unsigned)weight;
    return 0;
}

static int option_server_set_interval(struct option_value *v, const struct option_server_word *w,
                                      struct upstream_server_conf *server, const char *text)
{
    int64_t ns;

    if (parse_duration(&ns, text, MAX_INTERVAL_NS) < 0 || ns < MIN_INTERVAL_NS)
        return option_refuse(v, "%s is not a %s from 10ms to 1h, with a unit", QUOTE_TEXT(text),
                             w->name);
    *(int64_t *)option_server_field(w, server) = ns;
    return 0;
}

static int option_server_set_flag(struct option_value *v, const struct option_server_word *w,
                                  struct upstream_server_conf *server, const char *text)
{
    (void)v;
    (void)text;
    *(bool *)option_server_field(w, server) = true;
    return 0;
}

/* `check=off`: what the section says can only be switched off. */
static int option_server_set_off(struct option_value *v, const struct option_server_word *w,
                                 struct upstream_server_conf *server, const char *text)
{
    if (strcmp(text, "off") != 0)
        return option_refuse(v, "%s is not a value of %s, which takes only off", QUOTE_TEXT(text),
                             w->name);
    return option_server_set_flag(v, w, server, text);
}

static int option_server_set_send_proxy(struct option_value *v, const struct option_server_word *w,
                                        struct upstream_server_conf *server, const char *text)
{
    static const char *const versions[] = {
        [PROXY_HEADER_NONE] = "off", [PROXY_HEADER_V1] = "v1", [PROXY_HEADER_V2] = "v2"};

    (void)w;
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        if (strcmp(text, versions[i]) != 0)
            continue;
        server->has_send_proxy = true;
        server->send_proxy = (enum proxy_header_version)i;
        return 0;
    }
    return option_refuse(v, "send_proxy=%s is none of off, v1 and v2", QUOTE_TEXT(text));
}

static int option_server_set_names(struct option_value *v, const struct option_server_word *w,
                                   struct upstream_server_conf *server, const char *text)
{
    (void)w;
    if (strcmp(text, "each") == 0)
        server->names = UPSTREAM_NAME_EACH;
    else if (strcmp(text, "one") == 0)
        server->names = UPSTREAM_NAME_ONE;
    else
        return option_refuse(v, "resolve=%s is neither each nor one", QUOTE_TEXT(text));
    return 0;
}

static int option_server_set_check_address(struct option_value *v,
                                           const struct option_server_word *w,
                                           struct upstream_server_conf *server, const char *text)
{
    struct address a;

    (void)w;
    if (address_parse_host(&a, text) < 0)
        return option_refuse(v, "%s is not an IP address", QUOTE_TEXT(text));
    server->check_address = option_network_keep_addresses(v, &a, 1);
    return !server->check_address ? -ENOMEM : 0;
}

/* `off`, a port, or the address of an agent elsewhere. */
static int option_server_set_agent(struct option_value *v, const struct option_server_word *w,
                                   struct upstream_server_conf *server, const char *text)
{
    struct address found[2];
    uint64_t port;

    server->has_no_agent = strcmp(text, "off") == 0;
    if (server->has_no_agent)
        return 0;
    if (parse_uint(&port, text, w->max) == 0 && port > 0) {
        server->agent_port = (unsigned)port;
        return 0;
    }
    if (address_parse_target(found, ARRAY_LEN(found), text) != 1)
        return option_refuse(v, "%s is neither off, nor a port from 1 to 65535, nor IP:PORT",
                             QUOTE_TEXT(text));
    server->agent_address = option_network_keep_addresses(v, found, 1);
    return !server->agent_address ? -ENOMEM : 0;
}

#define SERVER(field) offsetof(struct upstream_server_conf, field)

static const struct option_server_word server_words[] = {
    {"weight", "N", option_server_set_weight, 0, BALANCER_MAX_WEIGHT},
    {"max_connections", "N", option_server_set_number, SERVER(max_connections), MAX_CONNECTIONS},
    {"resolve", "N", option_server_set_names, 0, 0},
    {"check", "off", option_server_set_off, SERVER(unchecked), 0},
    {"check_address", "N", option_server_set_check_address, 0, 0},
    {"check_port", "N", option_server_set_number, SERVER(check_port), UINT16_MAX},
    {"check_interval", "2s", option_server_set_interval, SERVER(check_interval_ns), 0},
    {"rise", "N", option_server_set_number, SERVER(rise), MAX_STREAK},
    {"fall", "N", option_server_set_number, SERVER(fall), MAX_STREAK},
    {"agent_check", "PORT", option_server_set_agent, 0, UINT16_MAX},
    {"eject", "off", option_server_set_off, SERVER(never_ejected), 0},
    {"send_proxy", "v2", option_server_set_send_proxy, 0, 0},
    {"backup", NULL, option_server_set_flag, SERVER(backup), 0},
    {"disabled", NULL, option_server_set_flag, SERVER(disabled), 0},
};

static const struct option_server_word *option_server_find(const char *word, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(server_words); i++)
        if (strlen(server_words[i].name) == len && memcmp(server_words[i].name, word, len) == 0)
            return &server_words[i];
    return NULL;
}

static int option_server_refuse_word(struct option_value *v, const char *word)
{
    struct foreign_words_hint hint;

    if (!foreign_words_hint(&hint, FOREIGN_WORDS_SERVER, word, strcspn(word, "=")))
        return option_refuse(v, "%s is not known", QUOTE_TEXT(word));
    v->foreign = true;
    return option_refuse(v, "%s is not known; %s", QUOTE_TEXT(word), hint.text);
}

/* Is ${word} another program's, with its value in the next word, as in `maxconn 100`? */
static bool option_server_has_value_behind(const char *word)
{
    struct foreign_words_hint hint;

    return foreign_words_hint(&hint, FOREIGN_WORDS_SERVER, word, strlen(word)) && hint.takes_value;
}

/* Set ${word}; ${given} has a bit for each word given before. */
static int option_server_set_word(struct option_value *v, struct upstream_server_conf *server,
                                  const char *word, unsigned *given)
{
    size_t len = strcspn(word, "=");
    const struct option_server_word *w = option_server_find(word, len);
    unsigned bit;

    if (!w || (!w->example && word[len] == '=') ||
        (word[len] == '\0' && strcmp(word, "check") == 0))
        return option_server_refuse_word(v, word);
    if (w->example && (word[len] == '\0' || word[len + 1] == '\0'))
        return option_refuse(v, "'%s' has no value, as in %s=%s without blanks", w->name, w->name,
                             w->example);
    bit = 1u << (w - server_words);
    if (*given & bit)
        return option_refuse(v, "'%s' is given twice", w->name);
    *given |= bit;
    return w->set(v, w, server, w->example ? word + len + 1 : word);
}

/* Is ${text} an SRV service, `_service._tcp.domain`? */
static bool option_server_is_service(const char *text)
{
    const char *protocol = strchr(text, '.');

    return text[0] == '_' && protocol && strncmp(protocol, "._tcp.", 6) == 0 &&
           !strchr(text, ':') && strlen(protocol) > 6;
}

static int option_server_set_service(struct option_value *v, struct upstream_server_conf *server)
{
    if (server->weight != 0 && server->weight != NO_WEIGHT)
        return option_refuse(v, "%s takes no weight but 0: its SRV records have weights",
                             QUOTE_TEXT(server->address_text));
    if (server->names != UPSTREAM_LITERAL)
        return option_refuse(v, "%s takes no resolve: its SRV records name the hosts",
                             QUOTE_TEXT(server->address_text));
    server->names = UPSTREAM_SERVICE;
    return 0;
}

/* Host names are not resolved here. */
static int option_server_parse_address(struct option_value *v, struct upstream_server_conf *server)
{
    struct address found[2];
    int n;

    if (server->address_text[0] == '*')
        return option_refuse(v, "%s is for listening, a server needs one address",
                             QUOTE_TEXT(server->address_text));
    if (option_server_is_service(server->address_text))
        return option_server_set_service(v, server);
    n = address_parse_target(found, ARRAY_LEN(found), server->address_text);
    if (n == -ENOENT) {
        if (server->names == UPSTREAM_LITERAL)
            server->names = UPSTREAM_NAME_EACH;
        return 0;
    }
    if (n < 0)
        return option_network_refuse_address(v, n, server->address_text, true);
    if (server->names != UPSTREAM_LITERAL)
        return option_refuse(v, "%s is not a host name: resolve does not apply",
                             QUOTE_TEXT(server->address_text));
    if (address_is_unix(&found[0]) && server->check_address && server->check_port == 0)
        return option_refuse(v, "check_address needs a check_port, since a unix socket has none");
    server->addresses = option_network_keep_addresses(v, found, (unsigned)n);
    if (!server->addresses)
        return -ENOMEM;
    server->n_addresses = (unsigned)n;
    return 0;
}

/* All problems of a server line; those that do not fit are counted. */
struct server_problems {
    char text[OPTION_PROBLEM_BYTES - sizeof("\n4294967295 more problems")];
    unsigned n, n_omitted;
};

static void option_server_add_problem(struct server_problems *all, const struct option_value *v)
{
    size_t len = strlen(all->text), n = strlen(v->problem);

    if (len + 1 + n >= sizeof(all->text)) {
        all->n_omitted++;
        return;
    }
    if (all->n > 0)
        all->text[len++] = '\n';
    memcpy(all->text + len, v->problem, n + 1);
    all->n++;
}

static int option_server_report_problems(struct option_value *v, const struct server_problems *all)
{
    if (all->n_omitted > 0)
        return option_refuse(v, "%s\n%u more problems", all->text, all->n_omitted);
    return option_refuse(v, "%s", all->text);
}

/* Set the words behind the address; add each wrong one to ${all}. */
static int option_server_set_words(struct option_value *v, struct upstream_server_conf *server,
                                   char **next, struct server_problems *all)
{
    unsigned given = 0;
    const char *word;

    while ((word = strtok_r(NULL, BLANKS, next))) {
        int rc = option_server_set_word(v, server, word, &given);

        if (rc == -ENOMEM)
            return rc;
        if (rc == 0)
            continue;
        option_server_add_problem(all, v);
        if (strncmp(*next + strspn(*next, BLANKS), "= ", 2) == 0)
            strtok_r(NULL, BLANKS, next); /* `weight = 5` */
        else if (!option_server_has_value_behind(word))
            continue;
        strtok_r(NULL, BLANKS, next);
    }
    return 0;
}

static int option_server_set(const struct option *o, struct option_value *v)
{
    struct server_problems all = {.text = ""};
    struct upstream_conf *conf = v->conf;
    struct upstream_server_conf server = {.id = option_member(o, v->key), .weight = NO_WEIGHT};
    char *rest = arena_text(v->arena, v->text, strlen(v->text));
    char *next;
    int rc;

    if (!rest)
        return -ENOMEM;
    if (!option_kind_is_name(server.id))
        return option_refuse(v, "the ID is not a name of 1 to %d characters",
                             OPTION_KIND_NAME_BYTES);
    server.address_text = strtok_r(rest, BLANKS, &next);
    if (!server.address_text)
        return option_refuse(v, "the value is blank");
    rc = option_server_set_words(v, &server, &next, &all);
    if (rc == 0)
        rc = option_server_parse_address(v, &server);
    if (rc == -ENOMEM)
        return rc;
    if (rc < 0)
        option_server_add_problem(&all, v);
    if (all.n > 0)
        return option_server_report_problems(v, &all);
    if (server.weight == NO_WEIGHT)
        server.weight = 1;
    conf->servers[conf->n_servers++] = server;
    return 0;
}

const struct option_kind option_server = {option_server_set, "", 0, NULL};
