/*
 * config/config_check: checks across options and sections (second half of config_load()).
 *
 * A problem is reported at the key that must change; if the key is missing, at the section.
 */
#include "config/config_memory.h"
#include "config/config_names.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/config_access_log.h"
#include "config/config_addresses.h"
#include "config/config_admin.h"
#include "config/config_checks.h"
#include "config/config_listen.h"
#include "option/option_routes.h"
#include "config/config_servers.h"
#include "config/config_sockets.h"
#include "option/option_need.h"
#include "option/option_route.h"
#include "ini/diagnostics.h"
#include "net/address.h"
#include "upstream/upstream.h"

struct config_check {
    const struct config *config;
    const struct config_memory *m;
    struct diagnostics *diagnostics;
};

static bool config_check_has(const struct section *section, const struct option *o)
{
    for (unsigned i = 0; i < section->source->n_entries; i++) {
        if (option_matches(o, section->source->entries[i].key))
            return true;
    }
    return false;
}

static void config_check_required(const struct config_check *c, const struct section *section)
{
    const struct option *o;

    for (unsigned i = 0; (o = option_row(section->kind, i)) != NULL; i++) {
        if ((o->flags & OPTION_REQUIRED) == 0 || config_check_has(section, o))
            continue;
        diagnostics_add(c->diagnostics, section->source->line, "[%s] %s: is missing: %s (%s)",
                        section->source->name, o->key, o->help, o->allowed);
    }
}

static void config_check_upstream_name(const struct config_check *c, const struct section *section,
                                       const struct ini_entry *entry, const char *name,
                                       const char *allowed)
{
    const struct config_name wanted = {.section = section,
                                       .entry = entry,
                                       .kind = OPTION_UPSTREAM,
                                       .text = name,
                                       .allowed = allowed};

    if (config_listen_find_upstream(c->config, name) < 0)
        config_names_refuse(&wanted, c->m, c->diagnostics);
}

static void config_check_routes(const struct config_check *c, const struct section *section)
{
    const struct listener_conf *conf = section->conf;

    for (unsigned i = 0; i < conf->n_routes; i++) {
        const struct ini_entry *entry = option_routes_entry(section, &conf->routes[i]);

        for (unsigned j = 0; j < conf->routes[i].n_shares; j++)
            config_check_upstream_name(c, section, entry, conf->routes[i].shares[j].upstream, NULL);
        if (conf->routes[i].upstream && conf->routes[i].n_shares == 0)
            config_check_upstream_name(c, section, entry, conf->routes[i].upstream,
                                       "the NAME of an [upstream NAME], or refuse");
        else if (!conf->routes[i].upstream &&
                 config_listen_find_upstream(c->config, OPTION_ROUTE_REFUSE) >= 0)
            diagnostics_add(c->diagnostics, entry->line,
                            "[%s] %s: 'refuse' would turn clients away, but there is an [upstream "
                            "refuse] (give that another name)",
                            section->source->name, entry->key);
        if (conf->service == LISTENER_ECHO && section_valid_entry(section, "service"))
            diagnostics_add(c->diagnostics, entry->line,
                            "[%s] %s: has no effect: service = echo connects to no server "
                            "(service = proxy, or no route)",
                            section->source->name, entry->key);
    }
    option_routes_check(section, c->diagnostics);
}

static void config_check_service(const struct config_check *c, const struct section *section)
{
    const struct listener_conf *conf = section->conf;
    const struct ini_entry *service = section_valid_entry(section, "service");
    const struct ini_entry *upstream = section_valid_entry(section, "upstream");

    if (conf->upstream)
        config_check_upstream_name(c, section, upstream, conf->upstream, NULL);
    if (conf->mirror)
        config_check_upstream_name(c, section, section_valid_entry(section, "mirror"), conf->mirror,
                                   NULL);
    if (!service)
        return;
    if (conf->service == LISTENER_PROXY && !conf->upstream && !option_routes_wanted(section) &&
        !section_refused(section, "upstream"))
        diagnostics_add(c->diagnostics, upstream ? upstream->line : service->line,
                        "[%s] upstream: is missing: service = proxy needs one (the NAME of an "
                        "[upstream NAME], or route.ID)",
                        section->source->name);
}

static void config_check_limits(const struct config_check *c, const struct section *section)
{
    const struct listener_conf *conf = section->conf;
    const struct quota_conf *each = &conf->clients.each;
    const struct ini_entry *most = section_valid_entry(section, "max_connections_per_client");

    if (most && conf->quota.max_connections > 0 &&
        each->max_connections > conf->quota.max_connections)
        diagnostics_add(c->diagnostics, most->line,
                        "[%s] max_connections_per_client: is above max_connections (at most that)",
                        section->source->name);
}

/* Open files: standard streams, log, signals, the main thread's timers and epoll instances. */
#define CONFIG_CHECK_OWN_FILES 16

/* Open files of a loop: epoll instances, wake-up and pipe. */
#define CONFIG_CHECK_LOOP_FILES 5

/* Least number of files that the process opens, besides those of connections. */
static uint64_t config_check_own_files(const struct server_conf *conf)
{
    uint64_t n = CONFIG_CHECK_OWN_FILES + conf->set_aside;

    n += CONFIG_CHECK_LOOP_FILES *
         (uint64_t)(conf->boss.threads + conf->worker.threads.n + conf->worker.threads.max);
    for (unsigned i = 0; i < conf->n_listeners; i++)
        n += conf->listeners[i].n_addresses;
    return n;
}

static unsigned config_check_files_each(const struct listener_conf *conf)
{
    return conf->service == LISTENER_PROXY ? 2 : 1;
}

/* Warn if the limit of open files is too low for max_connections: clients then wait earlier. */
static void config_check_files(const struct config_check *c, const struct section *section,
                               unsigned max_connections, unsigned files_each)
{
    const struct ini_entry *most = section_valid_entry(section, "max_connections");
    uint64_t needed =
        (uint64_t)files_each * max_connections + config_check_own_files(&c->config->server);
    struct rlimit limit;

    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (most && max_connections > 0 && needed > limit.rlim_max)
        diagnostics_warn(c->diagnostics, most->line,
                         "[%s] max_connections: cannot be reached: needs %" PRIu64
                         " open files, the limit is %" PRIu64 " (ulimit -Hn; LimitNOFILE=)",
                         section->source->name, needed, (uint64_t)limit.rlim_max);
}

static void config_check_all_files(const struct config_check *c, const struct section *section)
{
    const struct server_conf *conf = &c->config->server;
    unsigned each = 2;

    for (unsigned i = 0; i < conf->n_listeners; i++)
        if (config_check_files_each(&conf->listeners[i]) < each)
            each = 1;
    config_check_files(c, section, conf->quota.max_connections, each);
}

static void config_check_chroot(const struct config_check *c, const struct section *section)
{
    const struct process_conf *conf = &c->config->process;
    const struct ini_entry *chroot = section_valid_entry(section, "chroot");

    if (chroot && conf->chroot && !conf->user && !section_refused(section, "user"))
        diagnostics_add(c->diagnostics, chroot->line,
                        "[%s] chroot: does not confine root (set user)", section->source->name);
}

static void config_check_accept_proxy(const struct config_check *c, const struct section *section)
{
    const struct proxy_protocol_conf *conf =
        &((const struct listener_conf *)section->conf)->accept_proxy;
    const struct ini_entry *mode = section_valid_entry(section, "accept_proxy");

    if (mode && conf->mode != PROXY_PROTOCOL_OFF && conf->trusted.n == 0 &&
        !section_refused(section, "trusted_proxies"))
        diagnostics_add(c->diagnostics, mode->line,
                        "[%s] accept_proxy: no proxy is trusted (set trusted_proxies)",
                        section->source->name);
}

static void config_check_ejection(const struct config_check *c, const struct section *section)
{
    const struct ejection_conf *conf = &((const struct upstream_conf *)section->conf)->ejection;
    const struct ini_entry *time = section_valid_entry(section, "eject_time");

    if (time && conf->failures > 0 && conf->time_ns > conf->time_max_ns)
        diagnostics_add(c->diagnostics, time->line,
                        "[%s] eject_time: is longer than eject_time_max (at most that)",
                        section->source->name);
}

/* Warn only, because a server may get a weight later. */
static void config_check_used(const struct config_check *c, const struct section *section)
{
    const struct upstream_conf *conf = section->conf;

    for (unsigned i = 0; i < conf->n_servers; i++)
        if (upstream_server_is_used(&conf->servers[i]))
            return;
    if (conf->n_servers > 0)
        diagnostics_warn(
            c->diagnostics, section->source->line,
            "[%s] no server gets connections: all are disabled or have weight=0; clients "
            "are reset",
            section->source->name);
}

int config_check_all(const struct config *config, struct diagnostics *diagnostics)
{
    const struct config_check c = {
        .config = config, .m = config->memory, .diagnostics = diagnostics};

    if (config_addresses_check(config, diagnostics) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < c.m->n_sections; i++) {
        const struct section *section = &c.m->sections[i];

        if (section->source)
            config_check_required(&c, section);
        if (section->kind == OPTION_LISTEN &&
            config_access_log_resolve(config, section, diagnostics) < 0)
            return -ENOMEM;
        option_need_check(section, diagnostics);
        if (section->kind == OPTION_REACTORD) {
            config_check_all_files(&c, section);
            config_check_chroot(&c, section);
        }
        if (section->kind == OPTION_ADMIN) {
            int rc = config_admin_check(config, section, diagnostics);

            if (rc < 0)
                return rc;
        }
        if (section->kind == OPTION_LISTEN) {
            config_check_service(&c, section);
            config_check_routes(&c, section);
            const struct listener_conf *conf = section->conf;

            config_check_limits(&c, section);
            config_check_files(&c, section, conf->quota.max_connections,
                               config_check_files_each(conf));
            config_check_accept_proxy(&c, section);
            config_listen_check(config, section, diagnostics);
        }
        if (section->kind == OPTION_LISTEN || section->kind == OPTION_UPSTREAM)
            config_sockets_check(section, diagnostics);
        if (section->kind == OPTION_ACCESS_LOG)
            config_access_log_check(config, section, diagnostics);
        if (section->kind == OPTION_UPSTREAM) {
            int rc = config_checks_all(section, diagnostics);

            if (rc < 0)
                return rc;
            config_check_ejection(&c, section);
            config_check_used(&c, section);
            rc = config_servers_check(config, section, 0, diagnostics);
            if (rc < 0)
                return rc;
        }
    }
    if (config->server.n_listeners == 0 && !c.m->incomplete)
        diagnostics_add(diagnostics, DIAGNOSTICS_WHOLE_FILE,
                        "there is nothing to listen on (at least one [listen NAME])");
    return 0;
}
