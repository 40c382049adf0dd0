/* daemon/config_mirror: see config_mirror.h. */
#include "daemon/config_mirror.h"

#include "daemon/config.h"
#include "daemon/config_memory.h"
#include "daemon/quote.h"
#include "daemon/report.h"
#include "server/way_back.h"

/* A copy that came back to us, by whichever way, might be copied again and again. */
static void check_servers(const struct config *config, const struct config_section *section,
                          const struct upstream_conf *up, struct report *report)
{
    unsigned line = config_section_entry(section, "mirror")->line;

    for (unsigned i = 0; i < up->n_servers; i++) {
        const struct upstream_server_conf *server = &up->servers[i];

        for (unsigned j = 0; j < server->n_addresses; j++)
            if (way_back_is(&config->server, up, &server->addresses[j]))
                report_add(report, line,
                           "[%s] mirror: %s of [upstream %s] is where we listen ourselves (a "
                           "mirror is no listener of ours)",
                           section->source->name, QUOTE_TEXT(server->address_text), up->name);
    }
}

void config_mirror_check(const struct config *config, const struct config_section *section,
                         struct report *report)
{
    const struct listener_conf *conf = section->conf;
    int i = conf->mirror != NULL ? server_conf_find_upstream(&config->server, conf->mirror) : -1;
    const struct upstream_conf *up;

    if (i < 0)
        return;
    up = &config->server.upstreams[i];
    check_servers(config, section, up, report);
    if (up->greeting.version != PROXY_HEADER_NONE)
        report_add(report, config_section_entry(section, "mirror")->line,
                   "[%s] mirror: [upstream %s] has send_proxy, and a mirror gets no header "
                   "(one without it)",
                   section->source->name, up->name);
}
