/* config/config_pipeline: see config_pipeline.h. */
#include "config/config_pipeline.h"

#include <string.h>

#include "config/config_memory.h"
#include "config/diagnostics.h"
#include "handlers/handler_type.h"
#include "server/listener.h"

static bool has_handler(const struct pipeline_conf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->n; i++) {
        if (strcmp(conf->list[i]->name, name) == 0)
            return true;
    }
    return false;
}

static const struct {
    const char *key;
    const char *handler; /* that it is for */
} handler_options[] = {
    {"frame_max_length", "frame"},
    {"frame_length_offset", "frame"},
    {"frame_length_width", "frame"},
    {"frame_length_adjustment", "frame"},
    {"frame_strip", "frame"},
    {"frame_byte_order", "frame"},
    {"frame_fail_fast", "frame"},
    {"frame_on_error", "frame"},
    {"idle_read", "idle"},
    {"idle_write", "idle"},
    {"idle_all", "idle"},
    {"idle_action", "idle"},
    {"executor_delay", "executor"},
};

/* What is set for handlers that are not there. */
static void check_owners(const struct config_section *section, const struct pipeline_conf *conf,
                         struct diagnostics *diagnostics)
{
    if (config_section_refused(section, "pipeline"))
        return; /* who knows what it was to have */
    for (size_t i = 0; i < ARRAY_LEN(handler_options); i++) {
        const struct ini_entry *entry = config_section_changed(section, handler_options[i].key);

        if (entry != NULL && !has_handler(conf, handler_options[i].handler))
            diagnostics_add(
                diagnostics, entry->line,
                "[%s] %s: there is no such handler (with pipeline = %s, or more of them)",
                section->source->name, entry->key, handler_options[i].handler);
    }
}

/*
 * ${value} is more than the longest frame has: told at the line that sets it, or at that of
 * frame_max_length.
 */
static void check_within(const struct config_section *section, const char *key, unsigned value,
                         struct diagnostics *diagnostics)
{
    const struct listener_conf *conf = section->conf;
    const struct ini_entry *entry = config_section_sound(section, key);

    if (value <= conf->pipeline.frame.decoder.max_length)
        return;
    if (entry == NULL)
        entry = config_section_sound(section, "frame_max_length");
    if (entry != NULL)
        diagnostics_add(diagnostics, entry->line,
                        "[%s] %s: %s does not fit into a frame (at most %u bytes)",
                        section->source->name, entry->key,
                        strcmp(key, "frame_strip") == 0 ? "what is stripped" : "the length field",
                        conf->pipeline.frame.decoder.max_length);
}

static void check_frame(const struct config_section *section, const struct pipeline_conf *conf,
                        struct diagnostics *diagnostics)
{
    const struct frame_decoder_conf *frame = &conf->frame.decoder;

    if (!has_handler(conf, "frame"))
        return;
    check_within(section, "frame_length_offset", frame->length_offset + frame->length_width,
                 diagnostics);
    check_within(section, "frame_strip", frame->strip, diagnostics);
}

static void check_idle(const struct config_section *section, const struct pipeline_conf *conf,
                       struct diagnostics *diagnostics)
{
    const struct ini_entry *pipeline = config_section_sound(section, "pipeline");

    if (pipeline != NULL && has_handler(conf, "idle") && conf->idle.read_ns == 0 &&
        conf->idle.write_ns == 0 && conf->idle.all_ns == 0)
        diagnostics_add(
            diagnostics, pipeline->line,
            "[%s] pipeline: the handler idle has nothing to do (with idle_read, idle_write or "
            "idle_all)",
            section->source->name);
}

void config_pipeline_check(const struct config_section *section, struct diagnostics *diagnostics)
{
    const struct pipeline_conf *conf = &((const struct listener_conf *)section->conf)->pipeline;

    check_owners(section, conf, diagnostics);
    check_frame(section, conf, diagnostics);
    check_idle(section, conf, diagnostics);
}
