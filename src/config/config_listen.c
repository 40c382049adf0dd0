#include "config/config_listen.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/config_memory.h"
#include "config/config_namespaces.h"
#include "option/option_routes.h"
#include "option/option_fault.h"
#include "handlers/pipeline_template.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "upstream/upstream.h"

/* Report a ${value} above frame_max_length at the line of ${key}, or else of frame_max_length. */
static void config_listen_check_within(const struct section *section, const char *key,
                                       const char *what, unsigned value,
                                       struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    const struct ini_entry *entry = section_valid_entry(section, key);
    const struct ini_entry *max = section_valid_entry(section, "frame_max_length");
    unsigned most = conf->pipeline.frame.decoder.max_length;

    if (value <= most)
        return;
    if (entry && entry != max)
        diagnostics_add(diagnostics, entry->line,
                        "[%s] %s: %s does not fit into a frame (at most %u bytes)",
                        section->source->name, entry->key, what, most);
    else if (max)
        diagnostics_add(diagnostics, max->line,
                        "[%s] %s: %s does not fit into a frame (at least %u bytes)",
                        section->source->name, max->key, what, value);
}

static unsigned config_listen_longest_delimiter(const struct frame_delimiter_list *delimiters)
{
    unsigned longest = 0;

    for (unsigned i = 0; i < delimiters->n; i++)
        if (delimiters->list[i].len > longest)
            longest = delimiters->list[i].len;
    return longest;
}

static void config_listen_check_frame(const struct section *section,
                                      const struct pipeline_conf *conf,
                                      struct diagnostics *diagnostics)
{
    const struct frame_decoder_conf *frame = &conf->frame.decoder;

    if (!pipeline_template_has(conf, "frame"))
        return;
    switch (frame->by) {
    case FRAME_DECODER_LENGTH:
        config_listen_check_within(section, "frame_length_offset", "the length field",
                                   frame->length_offset + frame->length_width, diagnostics);
        config_listen_check_within(section, "frame_strip", "the stripped part", frame->strip,
                                   diagnostics);
        break;
    case FRAME_DECODER_TEXT_LENGTH:
        config_listen_check_within(section, "frame_max_length", "the longest text length",
                                   FRAME_DECODER_TEXT_BYTES, diagnostics);
        break;
    case FRAME_DECODER_DELIMITER:
        config_listen_check_within(section, "frame_delimiter", "a delimiter",
                                   config_listen_longest_delimiter(&frame->delimiters),
                                   diagnostics);
        break;
    }
}

static void config_listen_check_idle(const struct section *section,
                                     const struct pipeline_conf *conf,
                                     struct diagnostics *diagnostics)
{
    const struct ini_entry *pipeline = section_valid_entry(section, "pipeline");

    if (pipeline && pipeline_template_has(conf, "idle") && conf->idle.read_ns == 0 &&
        conf->idle.write_ns == 0 && conf->idle.all_ns == 0)
        diagnostics_add(
            diagnostics, pipeline->line,
            "[%s] pipeline: the handler idle has nothing to do (set idle_read, idle_write or "
            "idle_all)",
            section->source->name);
}

static void config_listen_check_pipeline(const struct section *section,
                                         struct diagnostics *diagnostics)
{
    const struct pipeline_conf *conf = &((const struct listener_conf *)section->conf)->pipeline;

    config_listen_check_frame(section, conf, diagnostics);
    config_listen_check_idle(section, conf, diagnostics);
}

static bool config_listen_is_ours(const struct server_conf *conf, const struct upstream_conf *up,
                                  const struct address *a)
{
    for (unsigned i = 0; i < conf->n_listeners; i++)
        if (config_namespaces_reaches(up, a, &conf->listeners[i]))
            return true;
    return false;
}

/* A mirror that leads to one of our listeners could copy bytes for ever. */
static void config_listen_check_servers(const struct config *config, const struct section *section,
                                        const struct upstream_conf *up,
                                        struct diagnostics *diagnostics)
{
    unsigned line = section_entry(section, "mirror")->line;

    for (unsigned i = 0; i < up->n_servers; i++) {
        const struct upstream_server_conf *server = &up->servers[i];

        for (unsigned j = 0; j < server->n_addresses; j++)
            if (config_listen_is_ours(&config->server, up, &server->addresses[j]))
                diagnostics_add(
                    diagnostics, line,
                    "[%s] mirror: %s of [upstream %s] is one of our listeners: the copy would "
                    "come back (another server)",
                    section->source->name, QUOTE_TEXT(server->address_text), up->name);
    }
}

int config_listen_find_upstream(const struct config *config, const char *name)
{
    for (unsigned i = 0; i < config->server.n_upstreams; i++)
        if (strcmp(config->server.upstreams[i].name, name) == 0)
            return (int)i;
    return -1;
}

void config_listen_check_mirror(const struct config *config, const struct section *section,
                                struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    int i = conf->mirror ? config_listen_find_upstream(config, conf->mirror) : -1;
    const struct upstream_conf *up;

    if (i < 0)
        return;
    up = &config->server.upstreams[i];
    config_listen_check_servers(config, section, up, diagnostics);
    if (up->send_proxy.version != PROXY_HEADER_NONE)
        diagnostics_add(
            diagnostics, section_entry(section, "mirror")->line,
            "[%s] mirror: [upstream %s] has send_proxy, but a mirror gets no PROXY header (an "
            "upstream without it)",
            section->source->name, up->name);
    if (up->hash_key.by != UPSTREAM_HASH_CLIENT)
        diagnostics_add(
            diagnostics, section_entry(section, "mirror")->line,
            "[%s] mirror: [upstream %s] has hash_key, but a mirror goes by the client's "
            "address (an upstream without it)",
            section->source->name, up->name);
    if (up->tls.name)
        diagnostics_add(diagnostics, section_entry(section, "mirror")->line,
                        "[%s] mirror: [upstream %s] has tls, but a mirror connects without TLS (an "
                        "upstream without it)",
                        section->source->name, up->name);
}

/* Why no client of ${section} has what ${key} hashes; NULL: some may have it. */
static const char *config_listen_lacks(const struct section *section,
                                       const struct upstream_hash_key *key)
{
    const struct listener_conf *conf = section->conf;
    bool has_header =
        conf->accept_proxy.mode != PROXY_PROTOCOL_OFF || section_refused(section, "accept_proxy");
    bool has_name =
        conf->tls.n_names > 0 || section_refused(section, "tls") || option_routes_wanted(section);

    if (key->by == UPSTREAM_HASH_TLV && !has_header)
        return "no PROXY header is read here (set accept_proxy)";
    if (key->by == UPSTREAM_HASH_SNI && !has_name && !has_header)
        return "no server name is read here (set tls, route.ID or accept_proxy)";
    return NULL;
}

/* ${entry} leads to the upstream ${name}. */
static void config_listen_check_key(const struct config *config, const struct section *section,
                                    const struct ini_entry *entry, const char *name,
                                    struct diagnostics *diagnostics)
{
    int i = name ? config_listen_find_upstream(config, name) : -1;
    const struct upstream_hash_key *key = i < 0 ? NULL : &config->server.upstreams[i].hash_key;
    const char *lacks = key ? config_listen_lacks(section, key) : NULL;
    char value[sizeof("tlv:0x00")];

    if (!lacks)
        return;
    if (key->by == UPSTREAM_HASH_TLV)
        snprintf(value, sizeof(value), "tlv:0x%02x", (unsigned)key->tlv);
    else
        snprintf(value, sizeof(value), "sni");
    diagnostics_add(diagnostics, entry->line, "[%s] %s: [upstream %s] has hash_key = %s, but %s",
                    section->source->name, entry->key, name, value, lacks);
}

static void config_listen_check_keys(const struct config *config, const struct section *section,
                                     struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;

    config_listen_check_key(config, section, section_entry(section, "upstream"), conf->upstream,
                            diagnostics);
    for (unsigned i = 0; i < conf->n_routes; i++) {
        const struct route_conf *route = &conf->routes[i];
        const struct ini_entry *entry = option_routes_entry(section, route);

        for (unsigned j = 0; j < route->n_shares; j++)
            config_listen_check_key(config, section, entry, route->shares[j].upstream, diagnostics);
        if (route->n_shares == 0)
            config_listen_check_key(config, section, entry, route->upstream, diagnostics);
    }
}

void config_listen_check(const struct config *config, const struct section *section,
                         struct diagnostics *diagnostics)
{
    config_listen_check_pipeline(section, diagnostics);
    if (!config->process.allow_faults)
        option_fault_refuse(section, diagnostics);
    config_listen_check_mirror(config, section, diagnostics);
    config_listen_check_keys(config, section, diagnostics);
}
