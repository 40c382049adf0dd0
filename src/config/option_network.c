#include "config/option_network.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "config/config.h"
#include "config/diagnostics.h"
#include "config/foreign_words.h"
#include "config/option_kind.h"
#include "listen/listener.h"
#include "net/address.h"
#include "upstream/upstream.h"

#define BLANKS          " \t"
#define MAX_CONNECTIONS 1000000

/* No weight=N is given. */
#define NO_WEIGHT UINT_MAX

/* Refuse ${word}; ${names}: host names are allowed. */
static int option_network_refuse_incomplete(struct option_value *v, const char *word, bool names)
{
    struct address a;
    int rc = address_parse_host(&a, word);

    if (word[strspn(word, "0123456789")] == '\0')
        return option_refuse(v, "%s is a port without an address", QUOTE_TEXT(word));
    if (rc == 0 && strchr(word, ':') && word[0] != '[')
        return option_refuse(v, "%s has no port, as in [::1]:7", QUOTE_TEXT(word));
    if (rc == 0 || (rc == -ENOENT && names) || strcmp(word, "*") == 0)
        return option_refuse(v, "%s has no port", QUOTE_TEXT(word));
    return option_refuse(v, "%s is not an address", QUOTE_TEXT(word));
}

static int option_network_refuse_address(struct option_value *v, int rc, const char *word,
                                         bool names)
{
    switch (rc) {
    case -ERANGE: return option_refuse(v, "the port of %s is not 1 to 65535", QUOTE_TEXT(word));
    case -ENAMETOOLONG:
        return option_refuse(v, "%s is too long for a unix socket, which takes 107 characters",
                             QUOTE_TEXT(word));
    default: return option_network_refuse_incomplete(v, word, names);
    }
}

/* Parse ${item} into one or two addresses at ${out}[${n}]; return their number. */
static int option_network_parse_item(struct option_value *v, struct address *out, unsigned n,
                                     const char *item)
{
    int rc;

    if (*item == '\0')
        return option_refuse(v, "an address is missing beside a comma");
    rc = address_parse(out + n, 2, item);
    if (rc == -ENOENT)
        return option_refuse(v, "%s is a host name, and a listener needs a numeric address",
                             QUOTE_TEXT(item));
    if (rc < 0)
        return option_network_refuse_address(v, rc, item, false);
    if (n + (unsigned)rc > OPTION_NETWORK_LISTEN_ADDRESSES)
        return option_refuse(v, "too many addresses, at most %d for one listener",
                             OPTION_NETWORK_LISTEN_ADDRESSES);
    return rc;
}

static struct address *option_network_keep_addresses(struct option_value *v,
                                                     const struct address *from, unsigned n)
{
    struct address *kept = arena_alloc(v->arena, n, sizeof(*kept));

    if (kept)
        memcpy(kept, from, n * sizeof(*kept));
    return kept;
}

static int option_network_read_addresses(struct option_value *v, struct address **out,
                                         unsigned *out_n)
{
    struct address found[OPTION_NETWORK_LISTEN_ADDRESSES + 2]; /* an item may add two */
    struct address *kept;
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    unsigned n = 0;

    if (!list)
        return -ENOMEM;
    while (list) {
        int rc = option_network_parse_item(v, found, n, option_kind_next_item(&list));

        if (rc < 0)
            return rc;
        n += (unsigned)rc;
    }
    kept = option_network_keep_addresses(v, found, n);
    if (!kept)
        return -ENOMEM;
    *out = kept;
    *out_n = n;
    return 0;
}

static int option_network_set_addresses(const struct option *o, struct option_value *v)
{
    struct listener_conf *conf = v->conf;

    (void)o;
    return option_network_read_addresses(v, &conf->addresses, &conf->n_addresses);
}

static int option_network_set_admin_addresses(const struct option *o, struct option_value *v)
{
    struct admin_conf *conf = v->conf;

    (void)o;
    return option_network_read_addresses(v, &conf->addresses, &conf->n_addresses);
}

/* Parse ${word}, the N of `NAME=N`. ${field} is 0 until it is set. */
static int option_network_set_server_number(struct option_value *v, unsigned *field,
                                            const char *word, const char *name, unsigned max)
{
    uint64_t number;

    if (*field != 0)
        return option_refuse(v, "'%s' is given twice", name);
    if (parse_uint(&number, word, max) < 0 || number == 0)
        return option_refuse(v, "%s is not a %s from 1 to %u", QUOTE_TEXT(word), name, max);
    *field = (unsigned)number;
    return 0;
}

static int option_network_set_server_weight(struct option_value *v,
                                            struct upstream_server_conf *server, const char *word)
{
    uint64_t weight;

    if (server->weight != NO_WEIGHT)
        return option_refuse(v, "'weight' is given twice");
    if (parse_uint(&weight, word, BALANCER_MAX_WEIGHT) < 0)
        return option_refuse(v, "%s is not a weight from 0 to %d", QUOTE_TEXT(word),
                             BALANCER_MAX_WEIGHT);
    server->weight = (unsigned)weight;
    return 0;
}

static int option_network_set_server_flag(struct option_value *v, bool *flag, const char *word)
{
    if (*flag)
        return option_refuse(v, "'%s' is given twice", word);
    *flag = true;
    return 0;
}

static int option_network_set_server_names(struct option_value *v,
                                           struct upstream_server_conf *server, const char *word)
{
    if (server->names != UPSTREAM_LITERAL)
        return option_refuse(v, "'resolve' is given twice");
    if (strcmp(word, "each") == 0)
        server->names = UPSTREAM_NAME_EACH;
    else if (strcmp(word, "one") == 0)
        server->names = UPSTREAM_NAME_ONE;
    else
        return option_refuse(v, "resolve=%s is neither each nor one", QUOTE_TEXT(word));
    return 0;
}

static int option_network_set_server_check_address(struct option_value *v,
                                                   struct upstream_server_conf *server,
                                                   const char *word)
{
    struct address a;

    if (server->check_address)
        return option_refuse(v, "'check_address' is given twice");
    if (address_parse_host(&a, word) < 0)
        return option_refuse(v, "%s is not an IP address", QUOTE_TEXT(word));
    server->check_address = option_network_keep_addresses(v, &a, 1);
    return !server->check_address ? -ENOMEM : 0;
}

static bool option_network_lacks_value(const char *word)
{
    static const char *const names[] = {"weight", "max_connections", "check_address", "check_port",
                                        "resolve"};
    size_t len = strcspn(word, "=");

    if (word[len] == '=' && word[len + 1] != '\0')
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == len && memcmp(names[i], word, len) == 0)
            return true;
    return false;
}

static int option_network_refuse_server_word(struct option_value *v, const char *word)
{
    struct foreign_words_hint hint;

    if (!foreign_words_hint(&hint, FOREIGN_WORDS_SERVER, word, strcspn(word, "=")))
        return option_refuse(v, "%s is not known", QUOTE_TEXT(word));
    v->foreign = true;
    return option_refuse(v, "%s is not known; %s", QUOTE_TEXT(word), hint.text);
}

/* Is ${word} another program's, with its value in the next word, as in `maxconn 100`? */
static bool option_network_has_value_behind(const char *word)
{
    struct foreign_words_hint hint;

    return foreign_words_hint(&hint, FOREIGN_WORDS_SERVER, word, strlen(word)) && hint.takes_value;
}

static int option_network_set_server_word(struct option_value *v,
                                          struct upstream_server_conf *server, const char *word)
{
    if (option_network_lacks_value(word))
        return option_refuse(v, "'%.*s' has no value, as in %.*s=N without blanks",
                             (int)strcspn(word, "="), word, (int)strcspn(word, "="), word);
    if (strcmp(word, "backup") == 0)
        return option_network_set_server_flag(v, &server->backup, word);
    if (strcmp(word, "disabled") == 0)
        return option_network_set_server_flag(v, &server->disabled, word);
    if (strncmp(word, "weight=", 7) == 0)
        return option_network_set_server_weight(v, server, word + 7);
    if (strncmp(word, "max_connections=", 16) == 0)
        return option_network_set_server_number(v, &server->max_connections, word + 16,
                                                "max_connections", MAX_CONNECTIONS);
    if (strncmp(word, "check_port=", 11) == 0)
        return option_network_set_server_number(v, &server->check_port, word + 11, "check_port",
                                                UINT16_MAX);
    if (strncmp(word, "check_address=", 14) == 0)
        return option_network_set_server_check_address(v, server, word + 14);
    if (strncmp(word, "resolve=", 8) == 0)
        return option_network_set_server_names(v, server, word + 8);
    return option_network_refuse_server_word(v, word);
}

/* Is ${text} an SRV service, `_service._tcp.domain`? */
static bool option_network_is_service(const char *text)
{
    const char *protocol = strchr(text, '.');

    return text[0] == '_' && protocol && strncmp(protocol, "._tcp.", 6) == 0 &&
           !strchr(text, ':') && strlen(protocol) > 6;
}

static int option_network_set_service(struct option_value *v, struct upstream_server_conf *server)
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
static int option_network_parse_server_address(struct option_value *v,
                                               struct upstream_server_conf *server)
{
    struct address found[2];
    int n;

    if (server->address_text[0] == '*')
        return option_refuse(v, "%s is for listening, a server needs one address",
                             QUOTE_TEXT(server->address_text));
    if (option_network_is_service(server->address_text))
        return option_network_set_service(v, server);
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

static void option_network_add_problem(struct server_problems *all, const struct option_value *v)
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

static int option_network_report_problems(struct option_value *v, const struct server_problems *all)
{
    if (all->n_omitted > 0)
        return option_refuse(v, "%s\n%u more problems", all->text, all->n_omitted);
    return option_refuse(v, "%s", all->text);
}

/* Set the words behind the address; add each wrong one to ${all}. */
static int option_network_set_server_words(struct option_value *v,
                                           struct upstream_server_conf *server, char **next,
                                           struct server_problems *all)
{
    const char *word;

    while ((word = strtok_r(NULL, BLANKS, next))) {
        int rc = option_network_set_server_word(v, server, word);

        if (rc == -ENOMEM)
            return rc;
        if (rc == 0)
            continue;
        option_network_add_problem(all, v);
        if (strncmp(*next + strspn(*next, BLANKS), "= ", 2) == 0)
            strtok_r(NULL, BLANKS, next); /* `weight = 5` */
        else if (!option_network_has_value_behind(word))
            continue;
        strtok_r(NULL, BLANKS, next);
    }
    return 0;
}

static int option_network_set_server(const struct option *o, struct option_value *v)
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
    rc = option_network_set_server_words(v, &server, &next, &all);
    if (rc == 0)
        rc = option_network_parse_server_address(v, &server);
    if (rc == -ENOMEM)
        return rc;
    if (rc < 0)
        option_network_add_problem(&all, v);
    if (all.n > 0)
        return option_network_report_problems(v, &all);
    if (server.weight == NO_WEIGHT)
        server.weight = 1;
    conf->servers[conf->n_servers++] = server;
    return 0;
}

const struct option_kind option_network_admin_addresses = {option_network_set_admin_addresses, "",
                                                           0, NULL};
const struct option_kind option_network_addresses = {option_network_set_addresses, "", 0, NULL};
const struct option_kind option_network_server = {option_network_set_server, "", 0, NULL};
