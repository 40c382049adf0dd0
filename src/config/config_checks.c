#include "config/config_checks.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "net/address.h"

#define ANY "[\\x00-\\xff]"

/* Bytes of the packets of pgsql and mysql without the user. */
#define PGSQL_BYTES 15
#define MYSQL_BYTES 34

/* Sources: redis.io, RESP; PostgreSQL 15, 55.7 (StartupMessage, ErrorResponse). */
#define REDIS_ANSWERS "send PING\\r\\n", "expect !~^-", "expect ~^\\+PONG"

static const char *const redis[] = {REDIS_ANSWERS, NULL};

/* INFO alone is answered by one that loads its data, too. */
static const char *const redis_master[] = {
    REDIS_ANSWERS,        "send INFO replication\\r\\n", "expect !~^-",
    "expect !role:slave", "expect role:master",          NULL,
};

static const char *const pgsql[] = {
    "send \\0\\0\\0\\x%02x\\0\\x03\\0\\0user\\0%s\\0\\0",
    "expect !~^E",
    "expect ~^R\\x00\\x00\\x00" ANY "\\x00\\x00\\x00",
    NULL,
};

/* Sources: MySQL, Protocol::HandshakeV10, HandshakeResponse41; RFC 5321; RFC 4511, 4.2 and 4.3. */
static const char *const mysql[] = {
    "expect !~^" ANY "{4}\\xff",
    "expect ~^" ANY "{4}\\x0a",
    "expect _password\\0",
    "send \\x%02x\\0\\0\\x01\\x01\\x82\\0\\0\\0\\0\\0\\x01\\x21"
    "\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0%s\\0\\0",
    "expect !~^" ANY "{4}\\xff",
    "expect ~^" ANY "{3}\\x02\\x00",
    "send \\x01\\0\\0\\0\\x01",
    NULL,
};

static const char *const smtp[] = {
    "expect !~^[45]\\d\\d",
    "expect ~^220( .*)?\\n",
    "send EHLO localhost\\r\\n",
    "expect !~^[45]\\d\\d",
    "expect ~^250( .*)?\\n",
    "send QUIT\\r\\n",
    "expect ~^221",
    NULL,
};

static const char *const ldap[] = {
    "send \\x30\\x0c\\x02\\x01\\x01\\x60\\x07\\x02\\x01\\x03\\x04\\x00\\x80\\x00",
    "expect \\x02\\x01\\x01\\x61",
    "expect !~\\x0a\\x01[^\\x00]",
    "expect \\x0a\\x01\\x00",
    "send \\x30\\x05\\x02\\x01\\x02\\x42\\x00",
    NULL,
};

static const struct {
    const char *const *steps; /* %02x: the packet's length, %s: the user */
    unsigned bytes;
} checks[] = {
    [UPSTREAM_CHECK_REDIS] = {redis, 0},
    [UPSTREAM_CHECK_REDIS_MASTER] = {redis_master, 0},
    [UPSTREAM_CHECK_PGSQL] = {pgsql, PGSQL_BYTES},
    [UPSTREAM_CHECK_MYSQL] = {mysql, MYSQL_BYTES},
    [UPSTREAM_CHECK_SMTP] = {smtp, 0},
    [UPSTREAM_CHECK_LDAP] = {ldap, 0},
};

/* Write ${step} with its length and user in their places. */
static void config_checks_expand(char *text, const char *step, unsigned bytes, const char *user)
{
    const char *length = bytes > 0 ? strstr(step, "%02x") : NULL;
    const char *name = length ? strstr(length, "%s") : NULL;

    if (!name)
        snprintf(text, INI_VALUE_BYTES, "%s", step);
    else
        snprintf(text, INI_VALUE_BYTES, "%.*s%02x%.*s%s%s", (int)(length - step), step,
                 bytes + (unsigned)strlen(user), (int)(name - length - 4), length + 4, user,
                 name + 2);
}

bool config_checks_step(char text[INI_VALUE_BYTES], const struct upstream_checks_conf *conf,
                        unsigned i)
{
    const char *const *steps = conf->kind > UPSTREAM_CHECK_STEPS ? checks[conf->kind].steps : NULL;

    if (!steps || !steps[i])
        return false;
    config_checks_expand(text, steps[i], checks[conf->kind].bytes, conf->user);
    return true;
}

static int config_checks_set_named(const struct section *section)
{
    struct upstream_conf *up = section->conf;
    const struct option *o = option_find(OPTION_UPSTREAM, "check_step.1");
    char text[INI_VALUE_BYTES], key[sizeof("check_step.NNN")];
    unsigned i = 0;
    int rc = 0;

    up->checks.check.n_steps = 0; /* those of the file are refused */
    for (; rc == 0 && config_checks_step(text, &up->checks, i); i++) {
        struct option_value v = {.conf = up, .arena = section->arena};

        snprintf(key, sizeof(key), "check_step.%u", (i + 1) % 1000);
        v.key = arena_text(section->arena, key, strlen(key));
        v.text = arena_text(section->arena, text, strlen(text));
        if (!v.key || !v.text)
            return -ENOMEM;
        rc = option_set(o, &v);
        MUST(rc != -EINVAL); /* tests/unit/config/test_config_checks.c */
    }
    return rc;
}

static void config_checks_refuse(const struct section *section, const struct check_step_conf *step,
                                 struct diagnostics *diagnostics, const char *problem)
{
    const struct option *o = option_find(OPTION_UPSTREAM, "check_step.1");

    for (unsigned i = 0; i < section->source->n_entries; i++) {
        const struct ini_entry *entry = &section->source->entries[i];
        unsigned number = 0;

        if (!option_matches(o, entry->key) ||
            sscanf(option_member(o, entry->key), "%u", &number) != 1 || number != step->number)
            continue;
        diagnostics_add(diagnostics, entry->line, "[%s] %s: %s", section->source->name, entry->key,
                        problem);
    }
}

/* Is the check made at a unix socket, which has no port? */
static bool config_checks_unix(const struct upstream_conf *up)
{
    for (unsigned i = 0; i < up->n_servers; i++)
        if (up->servers[i].n_addresses > 0 && address_is_unix(&up->servers[i].addresses[0]) &&
            !up->servers[i].check_address)
            return true;
    return false;
}

/* What is wrong with step ${i} between the others; NULL: nothing. */
static const char *config_checks_problem(const struct upstream_conf *up, unsigned i)
{
    const struct check_conf *conf = &up->checks.check;
    const struct check_step_conf *step = &conf->steps[i];
    unsigned n = i;

    if (step->kind == CHECK_STEP_CONNECT && step->tls && !upstream_checks_with_tls(up))
        return "tls needs the settings of a [tls NAME] (set check_tls)";
    if (step->kind == CHECK_STEP_CONNECT && step->port > 0 && config_checks_unix(up))
        return "a server is a unix socket, which has no port (set its check_address)";
    if (step->kind != CHECK_STEP_REFUSE)
        return NULL;
    while (n < conf->n_steps && conf->steps[n].kind == CHECK_STEP_REFUSE)
        n++;
    if (n == conf->n_steps || conf->steps[n].kind != CHECK_STEP_EXPECT)
        return "an 'expect !' holds until another expect, which must follow it, has its text";
    if (n - i >= CHECK_MATCHES_MAX)
        return "more than seven 'expect !' in a row";
    return NULL;
}

static void config_checks_http(const struct section *section, struct diagnostics *diagnostics)
{
    const struct check_conf *conf = &((const struct upstream_conf *)section->conf)->checks.check;
    const struct ini_entry *expect = section_valid_entry(section, "check_expect");

    if (expect && conf->expect.len > 0 && strcmp(conf->http.method, "HEAD") == 0)
        diagnostics_add(diagnostics, expect->line,
                        "[%s] check_expect: a HEAD request has no body to search (check_http = GET "
                        "%s, or no check_expect)",
                        section->source->name, conf->http.target);
}

/* A unix socket has no port at which an agent could be. */
static void config_checks_agents(const struct section *section, struct diagnostics *diagnostics)
{
    const struct upstream_conf *up = section->conf;
    char key[sizeof("server.") + OPTION_KIND_NAME_BYTES];

    for (unsigned i = 0; i < up->n_servers; i++) {
        const struct upstream_server_conf *server = &up->servers[i];

        if (!upstream_has_agent(up, server) || server->agent_address || server->n_addresses == 0 ||
            !address_is_unix(&server->addresses[0]))
            continue;
        snprintf(key, sizeof(key), "server.%s", server->id);
        diagnostics_add(diagnostics, section_entry(section, key)->line,
                        "[%s] %s: a unix socket has no port for an agent (set agent_check=IP:PORT "
                        "or off)",
                        section->source->name, key);
    }
}

int config_checks_all(const struct section *section, struct diagnostics *diagnostics)
{
    const struct upstream_conf *up = section->conf;
    const struct ini_entry *entry = section_valid_entry(section, "check");

    config_checks_agents(section, diagnostics);
    if (up->checks.kind > UPSTREAM_CHECK_STEPS)
        return config_checks_set_named(section);
    if (up->checks.kind == UPSTREAM_CHECK_HTTP)
        config_checks_http(section, diagnostics);
    if (up->checks.kind != UPSTREAM_CHECK_STEPS)
        return 0;
    for (unsigned i = 0; i < section->source->n_entries; i++)
        if (section->source->entries[i].refused)
            return 0; /* steps may be missing */
    if (up->checks.check.n_steps == 0)
        diagnostics_add(diagnostics, entry->line,
                        "[%s] check: there are no steps (set check_step.1)", section->source->name);
    for (unsigned i = 0; i < up->checks.check.n_steps; i++) {
        const char *problem = config_checks_problem(up, i);

        if (problem)
            config_checks_refuse(section, &up->checks.check.steps[i], diagnostics, problem);
    }
    return 0;
}
