/* config/config_listen: see config_listen.h. */
#include "config/config_listen.h"

#include <string.h>

#include "config/config.h"
#include "config/config_memory.h"
#include "config/diagnostics.h"
#include "handlers/fault_handler.h"
#include "handlers/handler_type.h"
#include "server/listener.h"
#include "server/proxy_loop.h"

static bool config_listen_has_handler(const struct pipeline_conf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->n; i++) {
        if (strcmp(conf->list[i]->name, name) == 0)
            return true;
    }
    return false;
}

static const struct {
    const char *key;
    const char *handler;
} handler_options[] = {
    {"frame_by", "frame"},
    {"frame_max_length", "frame"},
    {"frame_length_offset", "frame"},
    {"frame_length_width", "frame"},
    {"frame_length_adjustment", "frame"},
    {"frame_strip", "frame"},
    {"frame_byte_order", "frame"},
    {"frame_length_end", "frame"},
    {"frame_strip_length", "frame"},
    {"frame_delimiter", "frame"},
    {"frame_strip_delimiter", "frame"},
    {"frame_fail_fast", "frame"},
    {"frame_on_error", "frame"},
    {"idle_read", "idle"},
    {"idle_write", "idle"},
    {"idle_all", "idle"},
    {"idle_action", "idle"},
    {"executor_delay", "executor"},
};

/* Report options for handlers not in the pipeline. */
static void config_listen_check_owners(const struct config_section *section,
                                       const struct pipeline_conf *conf,
                                       struct diagnostics *diagnostics)
{
    if (config_section_refused(section, "pipeline"))
        return; /* its handlers are unknown */
    for (size_t i = 0; i < ARRAY_LEN(handler_options); i++) {
        const struct ini_entry *entry = config_section_changed(section, handler_options[i].key);

        if (entry && !config_listen_has_handler(conf, handler_options[i].handler))
            diagnostics_add(diagnostics, entry->line,
                            "[%s] %s: needs the handler %s (pipeline = %s, or a list with it)",
                            section->source->name, entry->key, handler_options[i].handler,
                            handler_options[i].handler);
    }
}

#define BY(kind) (1u << FRAME_DECODER_##kind)

static const struct {
    const char *key;
    unsigned by;
    const char *words;
} frame_options[] = {
    {"frame_length_offset", BY(LENGTH), "length"},
    {"frame_length_width", BY(LENGTH), "length"},
    {"frame_length_adjustment", BY(LENGTH) | BY(TEXT_LENGTH), "length or text_length"},
    {"frame_strip", BY(LENGTH), "length"},
    {"frame_byte_order", BY(LENGTH), "length"},
    {"frame_length_end", BY(TEXT_LENGTH), "text_length"},
    {"frame_strip_length", BY(TEXT_LENGTH), "text_length"},
    {"frame_delimiter", BY(DELIMITER), "delimiter"},
    {"frame_strip_delimiter", BY(DELIMITER), "delimiter"},
};

static void config_listen_check_frame_by(const struct config_section *section,
                                         enum frame_decoder_by by, struct diagnostics *diagnostics)
{
    if (config_section_refused(section, "frame_by"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(frame_options); i++) {
        const struct ini_entry *entry = config_section_changed(section, frame_options[i].key);

        if (entry && (frame_options[i].by & 1u << by) == 0)
            diagnostics_add(diagnostics, entry->line, "[%s] %s: only with frame_by = %s",
                            section->source->name, entry->key, frame_options[i].words);
    }
}

/* Report a ${value} above the longest frame, at its line or that of frame_max_length. */
static void config_listen_check_within(const struct config_section *section, const char *key,
                                       const char *what, unsigned value,
                                       struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    const struct ini_entry *entry = config_section_valid_entry(section, key);

    if (value <= conf->pipeline.frame.decoder.max_length)
        return;
    if (!entry)
        entry = config_section_valid_entry(section, "frame_max_length");
    if (entry)
        diagnostics_add(
            diagnostics, entry->line, "[%s] %s: %s does not fit into a frame (at most %u bytes)",
            section->source->name, entry->key, what, conf->pipeline.frame.decoder.max_length);
}

static unsigned config_listen_longest_delimiter(const struct frame_delimiter_list *delimiters)
{
    unsigned longest = 0;

    for (unsigned i = 0; i < delimiters->n; i++)
        if (delimiters->list[i].len > longest)
            longest = delimiters->list[i].len;
    return longest;
}

static void config_listen_check_frame(const struct config_section *section,
                                      const struct pipeline_conf *conf,
                                      struct diagnostics *diagnostics)
{
    const struct frame_decoder_conf *frame = &conf->frame.decoder;

    if (!config_listen_has_handler(conf, "frame"))
        return;
    config_listen_check_frame_by(section, frame->by, diagnostics);
    switch (frame->by) {
    case FRAME_DECODER_LENGTH:
        config_listen_check_within(section, "frame_length_offset", "the length field",
                                   frame->length_offset + frame->length_width, diagnostics);
        config_listen_check_within(section, "frame_strip", "what is stripped", frame->strip,
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

static void config_listen_check_idle(const struct config_section *section,
                                     const struct pipeline_conf *conf,
                                     struct diagnostics *diagnostics)
{
    const struct ini_entry *pipeline = config_section_valid_entry(section, "pipeline");

    if (pipeline && config_listen_has_handler(conf, "idle") && conf->idle.read_ns == 0 &&
        conf->idle.write_ns == 0 && conf->idle.all_ns == 0)
        diagnostics_add(
            diagnostics, pipeline->line,
            "[%s] pipeline: the handler idle has nothing to do (with idle_read, idle_write or "
            "idle_all)",
            section->source->name);
}

static void config_listen_check_pipeline(const struct config_section *section,
                                         struct diagnostics *diagnostics)
{
    const struct pipeline_conf *conf = &((const struct listener_conf *)section->conf)->pipeline;

    config_listen_check_owners(section, conf, diagnostics);
    config_listen_check_frame(section, conf, diagnostics);
    config_listen_check_idle(section, conf, diagnostics);
}

static void config_listen_refuse(const struct config_section *section, const char *key,
                                 const char *what, struct diagnostics *diagnostics)
{
    diagnostics_add(diagnostics, config_section_entry(section, key)->line, "[%s] %s: %s",
                    section->source->name, key, what);
}

static void config_listen_check_faults(const struct config_section *section, bool allowed,
                                       struct diagnostics *diagnostics)
{
    const struct fault_handler_conf *conf =
        &((const struct listener_conf *)section->conf)->pipeline.fault;
    const struct {
        const char *key;
        bool is_set;
    } faults[] = {{"fault_delay", conf->delay_ns > 0},
                  {"fault_jitter", conf->jitter_ns > 0},
                  {"fault_rate", conf->rate > 0},
                  {"fault_reset_after", conf->reset_after > 0},
                  {"fault_drop", conf->drop > 0}},
      others[] = {{"fault_drop_as", conf->drop_as != FAULT_DROP_RESET},
                  {"fault_percent", conf->percent != 100},
                  {"fault_clients", conf->clients.n > 0},
                  {"fault_seed", conf->seed > 0}};

    for (size_t i = 0; !allowed && i < ARRAY_LEN(faults); i++)
        if (faults[i].is_set)
            config_listen_refuse(
                section, faults[i].key,
                "faults are not allowed (with [reactord] allow_faults = yes, for tests only)",
                diagnostics);
    for (size_t i = 0; !fault_handler_wanted(conf) && i < ARRAY_LEN(others); i++)
        if (others[i].is_set)
            config_listen_refuse(section, others[i].key,
                                 "there is no fault (with fault_delay, fault_jitter, fault_rate, "
                                 "fault_reset_after or fault_drop)",
                                 diagnostics);
}

/* A copy back to one of our listeners may be copied for ever. */
static void config_listen_check_servers(const struct config *config,
                                        const struct config_section *section,
                                        const struct upstream_conf *up,
                                        struct diagnostics *diagnostics)
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

static void config_listen_check_mirror(const struct config *config,
                                       const struct config_section *section,
                                       struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    int i = conf->mirror ? server_conf_find_upstream(&config->server, conf->mirror) : -1;
    const struct upstream_conf *up;

    if (i < 0)
        return;
    up = &config->server.upstreams[i];
    config_listen_check_servers(config, section, up, diagnostics);
    if (up->send_proxy.version != PROXY_HEADER_NONE)
        diagnostics_add(diagnostics, config_section_entry(section, "mirror")->line,
                        "[%s] mirror: [upstream %s] has send_proxy, and a mirror gets no header "
                        "(one without it)",
                        section->source->name, up->name);
}

void config_listen_check(const struct config *config, const struct config_section *section,
                         struct diagnostics *diagnostics)
{
    config_listen_check_pipeline(section, diagnostics);
    config_listen_check_faults(section, config->process.allow_faults, diagnostics);
    config_listen_check_mirror(config, section, diagnostics);
}
