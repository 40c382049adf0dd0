/* option/option_tls: options of [tls NAME], and their kinds. */
#include "option/option_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_need.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "tls/server_name.h"
#include "tls/tls_conf.h"
#include "tls/tls_sections.h"

/* Longest name of a protocol (RFC 7301, 3.1). */
#define OPTION_TLS_PROTOCOL_BYTES 255

static unsigned option_tls_count_items(const char *list)
{
    unsigned n = 1;

    for (; *list != '\0'; list++)
        n += *list == ',';
    return n;
}

static int option_tls_check_path(struct option_value *v, const char *path)
{
    if (*path == '\0')
        return option_refuse(v, "a path is missing beside a comma");
    if (path[0] != '/')
        return option_refuse(v, "%s is not an absolute path", QUOTE_TEXT(path));
    return 0;
}

static int option_tls_set_paths(const struct option *o, struct option_value *v)
{
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    struct tls_paths found = {
        .list = arena_alloc(v->arena, option_tls_count_items(v->text), sizeof(*found.list))};

    if (!list || !found.list)
        return -ENOMEM;
    while (list) {
        const char *path = option_kind_next_item(&list);
        int rc = option_tls_check_path(v, path);

        if (rc < 0)
            return rc;
        found.list[found.n++] = path;
    }
    memcpy(option_field(o, v), &found, sizeof(found));
    return 0;
}

/* Store a list separated by colons, not by blanks or commas. */
static int option_tls_set_list(const struct option *o, struct option_value *v)
{
    for (const char *p = v->text; *p != '\0'; p++) {
        if (strchr(" \t,", *p))
            return option_refuse(v, "%s has another separator than a colon", QUOTE_TEXT(v->text));
        if (*p < '!' || *p > '~')
            return option_refuse(v, "%s is not a list of names", QUOTE_TEXT(v->text));
    }
    memcpy(option_field(o, v), &v->text, sizeof(v->text));
    return 0;
}

static int option_tls_set_protocols(const struct option *o, struct option_value *v)
{
    struct tls_profile_conf *conf = option_field(o, v);
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    unsigned char *found = arena_alloc(v->arena, strlen(v->text) + 2, 1);
    unsigned n = 0;

    if (!list || !found)
        return -ENOMEM;
    conf->alpn_of_client = strcmp(v->text, "client") == 0;
    while (list && !conf->alpn_of_client) {
        const char *name = option_kind_next_item(&list);
        size_t len = strlen(name);

        if (len == 0)
            return option_refuse(v, "a protocol is missing beside a comma");
        if (len > OPTION_TLS_PROTOCOL_BYTES)
            return option_refuse(v, "%s is too long", QUOTE_TEXT(name));
        if (strcmp(name, "client") == 0)
            return option_refuse(v, "client stands beside others");
        found[n++] = (unsigned char)len;
        memcpy(found + n, name, len);
        n += (unsigned)len;
    }
    conf->alpn = found;
    conf->alpn_bytes = n;
    return 0;
}

static int option_tls_add_pattern(struct option_value *v, struct tls_paths *found, const char *item)
{
    char *name = arena_alloc(v->arena, SERVER_NAME_BYTES, 1);

    if (!name)
        return -ENOMEM;
    if (*item == '\0')
        return option_refuse(v, "a name is missing beside a comma");
    if (server_name_read_pattern(name, item, strlen(item)) < 0)
        return option_refuse(v, "%s is not a host name", QUOTE_TEXT(item));
    for (unsigned i = 0; i < found->n; i++)
        if (strcmp(found->list[i], name) == 0)
            return option_refuse(v, "%s is given twice", QUOTE_TEXT(item));
    found->list[found->n++] = name;
    return 0;
}

static int option_tls_set_patterns(const struct option *o, struct option_value *v)
{
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    struct tls_paths found = {
        .list = arena_alloc(v->arena, option_tls_count_items(v->text), sizeof(*found.list))};
    int rc = list && found.list ? 0 : -ENOMEM;

    while (rc == 0 && list)
        rc = option_tls_add_pattern(v, &found, option_kind_next_item(&list));
    if (rc == 0)
        memcpy(option_field(o, v), &found, sizeof(found));
    return rc;
}

static int option_tls_set_sections(const struct option *o, struct option_value *v)
{
    struct listener_tls_conf *conf = option_field(o, v);
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    struct option_names names = {.max = TLS_SECTIONS_MAX};
    int rc;

    names.list = arena_alloc(v->arena, TLS_SECTIONS_MAX, sizeof(*names.list));
    rc = list && names.list ? 0 : -ENOMEM;
    while (rc == 0 && list)
        rc = option_kind_add_name(&names, v, option_kind_next_item(&list));
    if (rc < 0)
        return rc;
    conf->names = names.list;
    conf->n_names = names.n;
    return 0;
}

static int option_tls_set_peer_name(const struct option *o, struct option_value *v)
{
    struct in6_addr ip6;
    char *name = arena_alloc(v->arena, SERVER_NAME_BYTES, 1);

    if (!name)
        return -ENOMEM;
    if (inet_pton(AF_INET6, v->text, &ip6) == 1)
        memcpy(name, v->text, strlen(v->text));
    else if (server_name_read(name, v->text, strlen(v->text)) < 0)
        return option_refuse(v, "%s is neither", QUOTE_TEXT(v->text));
    memcpy(option_field(o, v), &name, sizeof(name));
    return 0;
}

static const struct option_kind option_tls_paths = {option_tls_set_paths, "", 0, NULL};
static const struct option_kind option_tls_list = {option_tls_set_list, "", 0, NULL};
static const struct option_kind option_tls_protocols = {option_tls_set_protocols, "", 0, NULL};
static const struct option_kind option_tls_patterns = {option_tls_set_patterns, "", 0, NULL};
const struct option_kind option_tls_sections = {option_tls_set_sections, "", 0, NULL};
const struct option_kind option_tls_peer_name = {option_tls_set_peer_name, "", 0, NULL};

static const struct option_word unknown_names[] = {
    {"default", TLS_UNKNOWN_NAME_DEFAULT},
    {"reject", TLS_UNKNOWN_NAME_REJECT},
    {NULL, 0},
};

static const struct option_word versions[] = {
    {"1.2", TLS_VERSION_1_2},
    {"1.3", TLS_VERSION_1_3},
    {NULL, 0},
};

static const struct option_word verifies[] = {
    {"required", TLS_VERIFY_REQUIRED},
    {"optional", TLS_VERIFY_OPTIONAL},
    {"off", TLS_VERIFY_OFF},
    {NULL, 0},
};

static const struct option_word truncateds[] = {
    {"eof", TLS_TRUNCATED_EOF},
    {"reset", TLS_TRUNCATED_RESET},
    {NULL, 0},
};

/* option_kind_word stores an unsigned. */
_Static_assert(sizeof(enum tls_unknown_name) == sizeof(unsigned), "enum tls_unknown_name");
_Static_assert(sizeof(enum tls_version) == sizeof(unsigned), "enum tls_version");
_Static_assert(sizeof(enum tls_verify) == sizeof(unsigned), "enum tls_verify");
_Static_assert(sizeof(enum tls_truncated) == sizeof(unsigned), "enum tls_truncated");

#define TLS(field) offsetof(struct tls_conf, field)

/* clang-format off */
static const struct option tls_rows[] = {
    {"certificate", &option_tls_paths, OPTION_EMPTY | OPTION_SINGLE, OPTION_NEW_CONNECTIONS, "",
     "absolute paths of files or directories, comma-separated",
     "certificates with their chains; the first one is the default",
     TLS(profile.certificates), 0, 0, NULL, NULL},
    {"key", &option_tls_paths, OPTION_EMPTY | OPTION_SINGLE, OPTION_NEW_CONNECTIONS, "",
     "absolute paths of files, comma-separated",
     "keys of the certificates, in the same order; empty: in the files of the certificates, or "
     "beside them",
     TLS(profile.keys), 0, 0, NULL, &option_need_certificate},
    {"names", &option_tls_patterns, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "host names or *.DOMAIN, comma-separated",
     "server names for which a listener with several sections uses this one; empty: those in its "
     "certificates",
     TLS(profile.names), 0, 0, NULL, &option_need_certificate},
    {"unknown_name", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "default",
     "default or reject", "answer to clients that ask for an unknown name or none",
     TLS(profile.unknown_name), 0, 0, unknown_names, &option_need_certificate},
    {"min_version", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "1.2",
     "1.2 or 1.3", "oldest TLS version to accept",
     TLS(profile.min_version), 0, 0, versions, NULL},
    {"ciphers", &option_tls_list, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "names as of openssl ciphers, colon-separated",
     "ciphers of TLS 1.2 and suites of 1.3, best first; empty: those with forward secrecy and AEAD",
     TLS(profile.ciphers), 0, 0, NULL, NULL},
    {"groups", &option_tls_list, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "names such as X25519 and P-256, colon-separated",
     "groups for the key exchange, best first; empty: X25519MLKEM768 if the library has it, "
     "X25519, P-256, P-384",
     TLS(profile.groups), 0, 0, NULL, NULL},
    {"alpn", &option_tls_protocols, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "names such as h2, comma-separated, or client",
     "protocols to offer to servers or to choose from for clients (ALPN), best first; client: offer "
     "each server the protocol agreed with its client; empty: none",
     TLS(profile), 0, 0, NULL, NULL},
    {"ca", &option_kind_path, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "an absolute path",
     "file with the CAs that issue the certificates of servers; empty: the CAs of the system",
     TLS(profile.ca), 0, 0, NULL, &option_need_verify},
    {"client_ca", &option_kind_path, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "an absolute path",
     "file with the CAs that issue the certificates of clients; empty: clients are not asked for "
     "one",
     TLS(profile.client_ca), 0, 0, NULL, &option_need_verify},
    {"client_crl", &option_kind_path, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "an absolute path",
     "file with certificate revocation lists, one from each CA in a client's chain",
     TLS(profile.client_crl), 0, 0, NULL, &option_need_client_ca},
    {"server_crl", &option_kind_path, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "an absolute path",
     "file with certificate revocation lists, one from each CA in a server's chain",
     TLS(profile.server_crl), 0, 0, NULL, &option_need_verify},
    {"verify", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "required",
     "required, optional or off",
     "whether the peer must have a valid certificate; optional: clients may have none",
     TLS(profile.verify), 0, 0, verifies, NULL},
    {"truncated", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "eof",
     "eof or reset", "what the other side gets after an end of file without close_notify",
     TLS(profile.truncated), 0, 0, truncateds, NULL},
    {"ocsp_file", &option_tls_paths, OPTION_EMPTY | OPTION_SINGLE, OPTION_NEW_CONNECTIONS, "",
     "absolute paths of files, comma-separated",
     "OCSP responses (DER) to send to clients with their certificates (stapling)",
     TLS(profile.ocsp), 0, 0, NULL, &option_need_certificate},
    {"ticket_keys", &option_tls_paths, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "absolute paths of files, comma-separated",
     "keys of session tickets; the first encrypts, all decrypt; empty: generated, and changed "
     "every two hours",
     TLS(profile.tickets), 0, 0, NULL, &option_need_certificate},
    {"watch", &option_kind_duration, OPTION_ZERO, OPTION_LIVE, "0",
     "0, or 100ms to 1h", "interval to check the files for changes; 0: never",
     TLS(watch_ns), 100 * NS_PER_MS, 3600 * NS_PER_S, NULL, NULL},
};
/* clang-format on */

const struct option_rows option_tls = {tls_rows, ARRAY_LEN(tls_rows)};
