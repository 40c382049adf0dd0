#include "config/config_sockets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "option/section.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "net/netns.h"
#include "net/sock_options.h"
#include "upstream/upstream.h"

/* Bit of net.ipv4.tcp_fastopen: data in the SYN of a client is taken. */
#define CONFIG_SOCKETS_FASTOPEN_SERVER 2

/* Read the first line of ${path}, as it is in ${ns}, without its end; empty: there is none. */
static void config_sockets_read(char *out, size_t size, const char *path, const struct netns *ns)
{
    bool inside = netns_enter(ns) == 0;
    FILE *f = inside ? fopen(path, "re") : NULL;

    if (!f || !fgets(out, (int)size, f))
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (f)
        fclose(f);
    if (inside)
        netns_leave(ns);
}

static void config_sockets_refuse(const struct section *section, const struct ini_entry *entry,
                                  int error, const struct sock_options *o,
                                  struct diagnostics *diagnostics)
{
    const char *name = section->source->name;
    char known[128];

    if (error == -EPERM) {
        diagnostics_add(diagnostics, entry->line,
                        "[%s] %s: this process may not set it (needs %s; see STARTING in "
                        "reactord(8))",
                        name, entry->key,
                        strcmp(entry->key, "interface") == 0 ||
                                strcmp(entry->key, "transparent") == 0
                            ? "CAP_NET_RAW"
                            : "CAP_NET_ADMIN");
    } else if (strcmp(entry->key, "mptcp") == 0) {
        diagnostics_add(diagnostics, entry->line,
                        "[%s] %s: the kernel does not offer it: %s (net.mptcp.enabled must be 1)",
                        name, entry->key, strerror(-error));
    } else if (o->mptcp && (error == -EOPNOTSUPP || error == -ENOPROTOOPT)) {
        diagnostics_add(diagnostics, entry->line,
                        "[%s] %s: Multipath TCP does not have it (none beside mptcp = yes)", name,
                        entry->key);
    } else if (strcmp(entry->key, "interface") == 0 && error == -ENODEV) {
        diagnostics_add(diagnostics, entry->line,
                        "[%s] %s: there is no interface %s (the name of a network interface)", name,
                        entry->key, QUOTE_TEXT(entry->value));
    } else if (strcmp(entry->key, "congestion") == 0 && error == -ENOENT) {
        config_sockets_read(known, sizeof(known),
                            "/proc/sys/net/ipv4/tcp_available_congestion_control", o->netns);
        diagnostics_add(diagnostics, entry->line, "[%s] %s: the kernel does not have %s (%s)", name,
                        entry->key, QUOTE_TEXT(entry->value),
                        known[0] != '\0' ? known : "a module may be missing");
    } else {
        diagnostics_add(diagnostics, entry->line, "[%s] %s: the kernel refuses %s: %s", name,
                        entry->key, QUOTE_TEXT(entry->value), strerror(-error));
    }
}

/* Warn only: the kernel takes the option, and it begins to work when the setting is changed. */
static void config_sockets_check_fastopen(const struct section *section,
                                          struct diagnostics *diagnostics)
{
    const struct ini_entry *entry = section_valid_entry(section, "fastopen");
    const struct listener_conf *conf = section->conf;
    unsigned mode;
    char text[16];

    if (!entry || conf->socket.fastopen == 0)
        return;
    config_sockets_read(text, sizeof(text), "/proc/sys/net/ipv4/tcp_fastopen", conf->socket.netns);
    if (sscanf(text, "%u", &mode) == 1 && (mode & CONFIG_SOCKETS_FASTOPEN_SERVER) == 0)
        diagnostics_warn(
            diagnostics, entry->line,
            "[%s] fastopen: has no effect while net.ipv4.tcp_fastopen is %u (sysctl -w "
            "net.ipv4.tcp_fastopen=%u)",
            section->source->name, mode, mode | CONFIG_SOCKETS_FASTOPEN_SERVER);
}

void config_sockets_check(const struct section *section, struct diagnostics *diagnostics)
{
    struct listener_conf *listener = section->conf;
    struct upstream_conf *upstream = section->conf;
    struct sock_options *o =
        section->kind == OPTION_LISTEN ? &listener->socket : &upstream->connect.sock.options;
    const struct ini_entry *entry;
    const char *key;
    int rc;

    o->nodelay_later = section->kind == OPTION_UPSTREAM;
    sock_options_index(o);
    if (!sock_options_are_rare(o) || section_refused(section, "namespace"))
        return;
    rc = sock_options_probe(o, &key);
    entry = rc < 0 && key ? section_valid_entry(section, key) : NULL;
    if (entry)
        config_sockets_refuse(section, entry, rc, o, diagnostics);
    if (section->kind == OPTION_LISTEN)
        config_sockets_check_fastopen(section, diagnostics);
}

unsigned config_sockets_capabilities(const struct config *config)
{
    const struct server_conf *conf = &config->server;
    unsigned needed = 0;

    for (unsigned i = 0; i < conf->n_listeners; i++)
        needed |= sock_options_capabilities(&conf->listeners[i].socket);
    for (unsigned i = 0; i < conf->n_upstreams; i++)
        needed |= sock_options_capabilities(&conf->upstreams[i].connect.sock.options);
    return needed;
}
