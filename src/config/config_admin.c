#include "config/config_admin.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/read_file.h"
#include "config/config.h"
#include "option/section.h"
#include "ini/diagnostics.h"
#include "net/address.h"

/* Shorter tokens can be guessed. */
#define TOKEN_MIN_BYTES 16

/* Refused modes of the token file: readers could use the token, writers replace it. */
#define TOKEN_TOO_OPEN (S_IWGRP | S_IROTH | S_IWOTH)

/* Part of the descriptors for connections that are not configured; least number of them. */
#define ADMIN_SHARE_PART 16
#define ADMIN_SHARE_MIN  4

struct config_admin {
    const struct section *section;
    struct admin_conf *conf;
    struct diagnostics *diagnostics;
};

static bool config_admin_is_loopback(const struct address *a)
{
    static const unsigned char loopback6[16] = {[15] = 1};
    size_t len;
    const unsigned char *host = address_host(a, &len);

    return len == 4 ? host[0] == 127 : memcmp(host, loopback6, sizeof(loopback6)) == 0;
}

static const struct address *config_admin_first_tcp(const struct admin_conf *conf)
{
    for (unsigned i = 0; i < conf->n_addresses; i++)
        if (!address_is_unix(&conf->addresses[i]))
            return &conf->addresses[i];
    return NULL;
}

static void config_admin_check_remote(const struct config_admin *c, const struct ini_entry *entry)
{
    char text[ADDRESS_TEXT_BYTES];

    if (c->conf->allow_remote || section_refused(c->section, "allow_remote"))
        return;
    for (unsigned i = 0; i < c->conf->n_addresses; i++) {
        const struct address *a = &c->conf->addresses[i];

        if (address_is_unix(a) || config_admin_is_loopback(a))
            continue;
        diagnostics_add(c->diagnostics, entry->line,
                        "[%s] address: other hosts can reach %s (127.0.0.1 or [::1], or set "
                        "allow_remote)",
                        c->section->source->name,
                        QUOTE_TEXT(address_format(text, sizeof(text), a)));
        return;
    }
}

static void config_admin_check_taken(const struct config_admin *c, const struct config *config,
                                     const struct ini_entry *entry)
{
    char text[ADDRESS_TEXT_BYTES];

    for (unsigned i = 0; i < c->conf->n_addresses; i++) {
        const struct address *a = &c->conf->addresses[i];

        for (unsigned j = 0; j < i; j++)
            if (address_conflicts(&c->conf->addresses[j], a, false))
                diagnostics_add(c->diagnostics, entry->line,
                                "[%s] address: %s is given twice (each address once)",
                                c->section->source->name,
                                QUOTE_TEXT(address_format(text, sizeof(text), a)));
        for (unsigned l = 0; l < config->server.n_listeners; l++) {
            const struct listener_conf *listener = &config->server.listeners[l];

            for (unsigned j = 0; j < listener->n_addresses; j++)
                if (address_conflicts(&listener->addresses[j], a, false))
                    diagnostics_add(c->diagnostics, entry->line,
                                    "[%s] address: %s is taken by [listen %s] (each address once)",
                                    c->section->source->name,
                                    QUOTE_TEXT(address_format(text, sizeof(text), a)),
                                    listener->name);
        }
    }
}

/* Cut blanks and line ends behind the token. Returns why the token cannot be used, or NULL. */
static const char *config_admin_token_problem(char *bytes, size_t *len)
{
    while (*len > 0 && isspace((unsigned char)bytes[*len - 1]))
        (*len)--;
    for (size_t i = 0; i < *len; i++)
        if (!isgraph((unsigned char)bytes[i]))
            return "has blanks or bytes that are not printable ASCII (one line with one token)";
    if (*len == 0)
        return "is empty (a token is needed)";
    if (*len < TOKEN_MIN_BYTES)
        return "has a token of less than 16 characters (such as: openssl rand -hex 32)";
    return *len > ADMIN_TOKEN_MAX_BYTES ? "has a token of more than 512 characters" : NULL;
}

static void config_admin_refuse_token(const struct config_admin *c, const struct ini_entry *entry,
                                      const char *problem)
{
    diagnostics_add(c->diagnostics, entry->line, "[%s] token_file: %s %s", c->section->source->name,
                    QUOTE_TEXT(entry->value), problem);
}

static int config_admin_read_token(const struct config_admin *c, const struct ini_entry *entry)
{
    struct file_content file = {.bytes = NULL};
    struct stat st;
    const char *problem = NULL;
    /* + 2: a line end, and one byte to detect a token that is too long */
    int rc = read_file(&file, c->conf->token_file, ADMIN_TOKEN_MAX_BYTES + 2);

    if (rc == -ENOMEM)
        return rc;
    if (rc < 0) {
        config_admin_refuse_token(
            c, entry, rc == -EFBIG ? "has a token of more than 512 characters" : file.problem);
        return 0;
    }
    if (stat(c->conf->token_file, &st) == 0 && (st.st_mode & TOKEN_TOO_OPEN) != 0)
        problem = "can be read by all or written by others (chmod 640 or less)";
    if (!problem)
        problem = config_admin_token_problem(file.bytes, &file.len);
    if (problem)
        config_admin_refuse_token(c, entry, problem);
    else
        c->conf->token = arena_text(c->section->arena, file.bytes, file.len);
    free(file.bytes);
    return problem || c->conf->token ? 0 : -ENOMEM;
}

struct admin_share config_admin_share(const struct admin_conf *conf)
{
    struct rlimit limit;
    unsigned part = ADMIN_CONNECTIONS_EXTRA, served = conf->max_connections;

    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_max / ADMIN_SHARE_PART < part)
        part = (unsigned)(limit.rlim_max / ADMIN_SHARE_PART);
    if (part < ADMIN_SHARE_MIN)
        part = ADMIN_SHARE_MIN;
    if (!conf->is_max_configured && served > part)
        served = part;
    return (struct admin_share){.served = served, .open = served + part};
}

int config_admin_check(const struct config *config, const struct section *section,
                       struct diagnostics *diagnostics)
{
    const struct config_admin c = {
        .section = section, .conf = section->conf, .diagnostics = diagnostics};
    const struct ini_entry *address = section_valid_entry(section, "address");
    const struct ini_entry *token = section_valid_entry(section, "token_file");
    const struct address *tcp = config_admin_first_tcp(c.conf);
    char text[ADDRESS_TEXT_BYTES];

    if (address) {
        config_admin_check_remote(&c, address);
        config_admin_check_taken(&c, config, address);
    }
    if (tcp && !c.conf->token_file && !section_refused(section, "token_file"))
        diagnostics_add(diagnostics, address->line,
                        "[%s] address: %s needs a token: any user of a host can connect to TCP "
                        "(set token_file, or use a unix socket)",
                        section->source->name, QUOTE_TEXT(address_format(text, sizeof(text), tcp)));
    return tcp && token && c.conf->token_file ? config_admin_read_token(&c, token) : 0;
}
