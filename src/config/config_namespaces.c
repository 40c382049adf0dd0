#include "config/config_namespaces.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "config/config.h"
#include "config/config_memory.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "net/netns.h"
#include "upstream/upstream.h"

#define CONFIG_NAMESPACES_ALLOWED "a network namespace, such as ip netns add makes"

/* Say what is wrong with ${value} in ${out}, and what is allowed or needed. */
static void config_namespaces_say(char *out, size_t size, const char *value, int error)
{
    const char *where = value[0] == '/' ? "" : " in " NETNS_DIRECTORY;

    switch (error) {
    case -ENOENT:
        snprintf(out, size, "there is no %s%s (" CONFIG_NAMESPACES_ALLOWED ")", QUOTE_TEXT(value),
                 where);
        break;
    case -EINVAL:
        snprintf(out, size, "%s%s is not a network namespace (one such as ip netns add makes)",
                 QUOTE_TEXT(value), where);
        break;
    case -EPERM:
        snprintf(out, size,
                 "this process may not enter it (needs CAP_SYS_ADMIN; see STARTING in "
                 "reactord(8))");
        break;
    case -EACCES:
        snprintf(out, size,
                 "this process may not open %s%s (needs CAP_SYS_ADMIN, and CAP_SYS_PTRACE for a "
                 "file of another process in /proc)",
                 QUOTE_TEXT(value), where);
        break;
    case -ENOSYS:
        snprintf(out, size, "there is no /proc/thread-self/ns/net (a /proc, in a chroot, too)");
        break;
    default:
        snprintf(out, size, "%s%s cannot be opened: %s (" CONFIG_NAMESPACES_ALLOWED ")",
                 QUOTE_TEXT(value), where, strerror(-error));
    }
}

static void config_namespaces_refuse(const struct section *section, int error,
                                     struct diagnostics *diagnostics)
{
    struct ini_entry *entry = ini_find(section->source, "namespace");
    char why[512];

    entry->refused = true;
    config_namespaces_say(why, sizeof(why), entry->value, error);
    diagnostics_add(diagnostics, entry->line, "[%s] namespace: %s", section->source->name, why);
}

/* A namespace of ${config} with the id ${id}; NULL: none. */
static struct netns *config_namespaces_find(const struct config *config, uint32_t id)
{
    const struct server_conf *conf = &config->server;

    for (unsigned i = 0; i < conf->n_listeners; i++)
        if (netns_id(conf->listeners[i].socket.netns) == id)
            return conf->listeners[i].socket.netns;
    for (unsigned i = 0; i < conf->n_upstreams; i++)
        if (netns_id(conf->upstreams[i].connect.sock.options.netns) == id)
            return conf->upstreams[i].connect.sock.options.netns;
    return NULL;
}

/* Replace ${ns} by the same namespace that is open already: reloads take no more descriptors. */
static struct netns *config_namespaces_share(struct netns *ns, const struct config *config,
                                             const struct config *running)
{
    struct netns *open = config_namespaces_find(config, netns_id(ns));

    if (!open && running)
        open = config_namespaces_find(running, netns_id(ns));
    if (!open)
        return ns;
    (void)netns_hold(open);
    netns_release(ns);
    return open;
}

static void config_namespaces_release(void *ns)
{
    netns_release(ns);
}

/* The index of an interface is another one in each namespace. */
static void config_namespaces_refuse_zone(const struct section *section, const struct address *a,
                                          struct diagnostics *diagnostics)
{
    char text[ADDRESS_TEXT_BYTES];

    if (a->netns != 0 && a->u.sa.sa_family == AF_INET6 && a->u.in6.sin6_scope_id != 0)
        diagnostics_add(diagnostics, section_entry(section, "address")->line,
                        "[%s] address: the zone of %s is not known in the namespace (an address "
                        "without a zone)",
                        section->source->name, QUOTE_TEXT(address_format(text, sizeof(text), a)));
}

static void config_namespaces_place(const struct section *section, uint32_t id,
                                    struct diagnostics *diagnostics)
{
    struct listener_conf *conf = section->conf;

    for (unsigned i = 0; i < conf->n_addresses; i++) {
        address_set_netns(&conf->addresses[i], id);
        if (diagnostics)
            config_namespaces_refuse_zone(section, &conf->addresses[i], diagnostics);
    }
}

static int config_namespaces_open(const struct section *section, struct sock_options *o,
                                  const struct config *config, const struct config *running,
                                  struct diagnostics *diagnostics)
{
    struct netns *ns;
    int rc = netns_open(&ns, o->namespace);

    if (rc < 0 && rc != -ENOMEM) {
        config_namespaces_refuse(section, rc, diagnostics);
        return 0;
    }
    if (rc < 0 || !ns)
        return rc;
    ns = config_namespaces_share(ns, config, running);
    rc = arena_own(section->arena, ns, config_namespaces_release);
    if (rc < 0)
        netns_release(ns);
    else
        o->netns = ns;
    return rc;
}

static struct sock_options *config_namespaces_options(const struct section *section)
{
    switch (section->kind) {
    case OPTION_LISTEN: return &((struct listener_conf *)section->conf)->socket;
    case OPTION_UPSTREAM: return &((struct upstream_conf *)section->conf)->connect.sock.options;
    default: return NULL;
    }
}

/* The addresses of a listener whose namespace is refused conflict with no others. */
int config_namespaces_all(const struct config *config, const struct config *running,
                          struct diagnostics *diagnostics)
{
    const struct config_memory *m = config->memory;
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < m->n_sections; i++) {
        const struct section *section = &m->sections[i];
        struct sock_options *o = config_namespaces_options(section);

        if (!o)
            continue;
        if (o->namespace)
            rc = config_namespaces_open(section, o, config, running, diagnostics);
        if (section->kind != OPTION_LISTEN)
            continue;
        if (section_refused(section, "namespace"))
            config_namespaces_place(section, UINT32_MAX - i, NULL);
        else if (o->netns)
            config_namespaces_place(section, netns_id(o->netns), diagnostics);
    }
    return rc;
}

bool config_namespaces_reaches(const struct upstream_conf *up, const struct address *server,
                               const struct listener_conf *listener)
{
    struct address there = *server;

    address_set_netns(&there, netns_id(up->connect.sock.options.netns));
    for (unsigned i = 0; i < listener->n_addresses; i++)
        if (address_covers(&listener->addresses[i], &there))
            return true;
    return false;
}
