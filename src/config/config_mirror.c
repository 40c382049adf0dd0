/* config/config_mirror: see config_mirror.h. */
#include "config/config_mirror.h"

#include "config/config.h"
#include "config/config_memory.h"
#include "config/quote.h"
#include "config/diagnostics.h"
#include "server/proxy_loop.h"

/* A copy that came back to us, by whichever way, might be copied again and again. */
static void check_servers(const struct config *config, const struct config_section *section,
                          const struct upstream_conf *up, struct diagnostics *diagnostics)
{
    unsigned line = config_section_entry(section, "mirror")->line;

    for (unsigned i = 0; i < up->n_servers; i++) {
        const struct upstream_server_conf *server = &up->servers[i];

        for (unsigned j = 0; j < server->n_addresses; j++)
            if (proxy_loop_is(&config->server, up, &server->addresses[j]))
                diagnostics_add(diagnostics, line,
                                "[%s] mirror: %s of [upstream %s] is where we listen ourselves (a "
                                "mirror is no listener of ours)",
                                section->source->name, QUOTE_TEXT(server->address_text), up->name);
    }
}

void config_mirror_check(const struct config *config, const struct config_section *section,
                         struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    int i = conf->mirror != NULL ? server_conf_find_upstream(&config->server, conf->mirror) : -1;
    const struct upstream_conf *up;

    if (i < 0)
        return;
    up = &config->server.upstreams[i];
    check_servers(config, section, up, diagnostics);
    if (up->greeting.version != PROXY_HEADER_NONE)
        diagnostics_add(diagnostics, config_section_entry(section, "mirror")->line,
                        "[%s] mirror: [upstream %s] has send_proxy, and a mirror gets no header "
                        "(one without it)",
                        section->source->name, up->name);
}
