#include "config/config_effect.h"

#include <string.h>

#include "base/must.h"
#include "config/config.h"
#include "config/config_routes.h"
#include "config/diagnostics.h"
#include "handlers/fault_handler.h"
#include "handlers/pipeline_template.h"
#include "listen/listener.h"
#include "net/address.h"
#include "tls/tls_conf.h"
#include "upstream/upstream.h"

static const struct listener_conf *config_effect_listener(const struct config_section *section)
{
    return section->conf;
}

/* Also true if `pipeline` was refused. */
static bool config_effect_has_handler(const struct config_section *section, const char *name)
{
    return pipeline_template_has(&config_effect_listener(section)->pipeline, name) ||
           config_section_refused(section, "pipeline");
}

static bool config_effect_has_frame(const struct config_section *section)
{
    return config_effect_has_handler(section, "frame");
}

static bool config_effect_has_idle(const struct config_section *section)
{
    return config_effect_has_handler(section, "idle");
}

static bool config_effect_has_executor(const struct config_section *section)
{
    return config_effect_has_handler(section, "executor");
}

static bool config_effect_frames_by(const struct config_section *section, enum frame_decoder_by by)
{
    return config_effect_listener(section)->pipeline.frame.decoder.by == by ||
           config_section_refused(section, "frame_by");
}

static bool config_effect_by_length(const struct config_section *section)
{
    return config_effect_frames_by(section, FRAME_DECODER_LENGTH);
}

static bool config_effect_by_text_length(const struct config_section *section)
{
    return config_effect_frames_by(section, FRAME_DECODER_TEXT_LENGTH);
}

static bool config_effect_by_any_length(const struct config_section *section)
{
    return config_effect_by_length(section) || config_effect_by_text_length(section);
}

static bool config_effect_by_delimiter(const struct config_section *section)
{
    return config_effect_frames_by(section, FRAME_DECODER_DELIMITER);
}

static bool config_effect_has_fault(const struct config_section *section)
{
    static const char *const keys[] = {"fault_delay", "fault_jitter", "fault_rate",
                                       "fault_reset_after", "fault_drop"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (config_section_refused(section, keys[i]))
            return true;
    return fault_handler_wanted(&config_effect_listener(section)->pipeline.fault);
}

static bool config_effect_has_access_log(const struct config_section *section)
{
    return strcmp(config_effect_listener(section)->access_log.where, "off") != 0 ||
           config_section_refused(section, "access_log");
}

static bool config_effect_has_socket_file(const struct config_section *section)
{
    const struct listener_conf *conf = config_effect_listener(section);

    for (unsigned i = 0; i < conf->n_addresses; i++)
        if (address_is_unix(&conf->addresses[i]) && conf->addresses[i].u.un.sun_path[0] != '\0')
            return true;
    return config_section_refused(section, "address");
}

static bool config_effect_reads_proxy_header(const struct config_section *section)
{
    return config_effect_listener(section)->accept_proxy.mode != PROXY_PROTOCOL_OFF ||
           config_section_refused(section, "accept_proxy");
}

static const struct admin_conf *config_effect_admin(const struct config_section *section)
{
    return section->conf;
}

static bool config_effect_has_admin(const struct config_section *section)
{
    return config_effect_admin(section)->n_addresses > 0 ||
           config_section_refused(section, "address");
}

static bool config_effect_admin_has(const struct config_section *section, bool is_unix)
{
    const struct admin_conf *conf = config_effect_admin(section);

    for (unsigned i = 0; i < conf->n_addresses; i++)
        if (address_is_unix(&conf->addresses[i]) == is_unix)
            return true;
    return config_section_refused(section, "address");
}

static bool config_effect_admin_has_unix(const struct config_section *section)
{
    return config_effect_admin_has(section, true);
}

static bool config_effect_admin_has_tcp(const struct config_section *section)
{
    return config_effect_admin_has(section, false);
}

static const struct upstream_conf *config_effect_upstream(const struct config_section *section)
{
    return section->conf;
}

static bool config_effect_has_checks(const struct config_section *section)
{
    return config_effect_upstream(section)->checks.kind != UPSTREAM_CHECK_OFF ||
           config_section_refused(section, "check");
}

static bool config_effect_ejects(const struct config_section *section)
{
    return config_effect_upstream(section)->ejection.failures > 0 ||
           config_section_refused(section, "eject_failures");
}

static bool config_effect_has_spares(const struct config_section *section)
{
    return config_effect_upstream(section)->spare.keep > 0 ||
           config_section_refused(section, "spare");
}

static bool config_effect_hashes(const struct config_section *section)
{
    enum balancer_kind kind = config_effect_upstream(section)->balance;

    return kind == BALANCER_SOURCE_HASH || kind == BALANCER_MAGLEV ||
           config_section_refused(section, "balance");
}

static bool config_effect_sends_tlvs(const struct config_section *section)
{
    return config_effect_upstream(section)->send_proxy.version == PROXY_HEADER_V2 ||
           config_section_refused(section, "send_proxy");
}

static bool config_effect_passes_tls(const struct config_section *section)
{
    return !config_effect_listener(section)->tls.name;
}

static bool config_effect_listens_with_tls(const struct config_section *section)
{
    return config_effect_listener(section)->tls.name || config_section_refused(section, "tls");
}

static bool config_effect_connects_with_tls(const struct config_section *section)
{
    return config_effect_upstream(section)->tls.name || config_section_refused(section, "tls");
}

static const struct tls_profile_conf *config_effect_tls(const struct config_section *section)
{
    return &((const struct tls_conf *)section->conf)->profile;
}

static bool config_effect_may_have_spares(const struct config_section *section)
{
    const struct upstream_conf *conf = config_effect_upstream(section);

    return !conf->tls.name || conf->send_proxy.version == PROXY_HEADER_NONE ||
           conf->spare.keep == 0;
}

static bool config_effect_has_certificate(const struct config_section *section)
{
    return config_effect_tls(section)->certificates.n > 0 ||
           config_section_refused(section, "certificate");
}

static bool config_effect_has_client_ca(const struct config_section *section)
{
    return config_effect_tls(section)->client_ca || config_section_refused(section, "client_ca");
}

static bool config_effect_verifies(const struct config_section *section)
{
    return config_effect_tls(section)->verify != TLS_VERIFY_OFF ||
           config_section_refused(section, "verify");
}

#define HANDLER(name) "needs the handler " name " (pipeline = " name ", or a list with it)"
#define FRAME_BY(by)  "needs frame_by = " by
#define NO_FAULT                                                                                   \
    "has no effect without a fault (set fault_delay, fault_jitter, fault_rate, fault_reset_after " \
    "or fault_drop)"
#define NO_ACCESS_LOG  "has no effect without an access log (set access_log)"
#define NO_SOCKET_FILE "has no effect without a unix socket (set an address such as /run/x.sock)"
#define NO_PROXY_HEADER \
    "has no effect: no PROXY header is read (set accept_proxy = optional or required)"
#define NO_ROUTES      "has no effect without routes (set route.ID)"
#define NO_ADMIN       "has no effect without an admin interface (set address)"
#define NO_ADMIN_TCP   "has no effect without a TCP address (set address)"
#define NO_CHECKS      "has no effect without health checks (set check = tcp)"
#define NO_TLS         "has no effect without TLS (set tls)"
#define NO_CERTIFICATE "has no effect without a certificate (set certificate)"
#define NO_VERIFY      "has no effect with verify = off"
#define NO_EJECTION    "has no effect without ejection (set eject_failures)"

/* A key can have several rows; the first row that fails gives the reason. */
static const struct {
    enum option_section section;
    const char *key;
    bool (*applies)(const struct config_section *section);
    const char *missing;
} rows[] = {
    {OPTION_ADMIN, "mode", config_effect_admin_has_unix, NO_SOCKET_FILE},
    {OPTION_ADMIN, "token_file", config_effect_admin_has_tcp, NO_ADMIN_TCP},
    {OPTION_ADMIN, "allow_remote", config_effect_admin_has_tcp, NO_ADMIN_TCP},
    {OPTION_ADMIN, "request_timeout", config_effect_has_admin, NO_ADMIN},
    {OPTION_ADMIN, "max_connections", config_effect_has_admin, NO_ADMIN},
    {OPTION_ADMIN, "metrics_servers", config_effect_has_admin, NO_ADMIN},
    {OPTION_ADMIN, "write", config_effect_has_admin, NO_ADMIN},

    {OPTION_LISTEN, "frame_by", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_max_length", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_length_offset", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_length_offset", config_effect_by_length, FRAME_BY("length")},
    {OPTION_LISTEN, "frame_length_width", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_length_width", config_effect_by_length, FRAME_BY("length")},
    {OPTION_LISTEN, "frame_length_adjustment", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_length_adjustment", config_effect_by_any_length,
     FRAME_BY("length or text_length")},
    {OPTION_LISTEN, "frame_strip", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_strip", config_effect_by_length, FRAME_BY("length")},
    {OPTION_LISTEN, "frame_byte_order", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_byte_order", config_effect_by_length, FRAME_BY("length")},
    {OPTION_LISTEN, "frame_length_end", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_length_end", config_effect_by_text_length, FRAME_BY("text_length")},
    {OPTION_LISTEN, "frame_strip_length", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_strip_length", config_effect_by_text_length, FRAME_BY("text_length")},
    {OPTION_LISTEN, "frame_delimiter", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_delimiter", config_effect_by_delimiter, FRAME_BY("delimiter")},
    {OPTION_LISTEN, "frame_strip_delimiter", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_strip_delimiter", config_effect_by_delimiter, FRAME_BY("delimiter")},
    {OPTION_LISTEN, "frame_fail_fast", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "frame_on_error", config_effect_has_frame, HANDLER("frame")},
    {OPTION_LISTEN, "idle_read", config_effect_has_idle, HANDLER("idle")},
    {OPTION_LISTEN, "idle_write", config_effect_has_idle, HANDLER("idle")},
    {OPTION_LISTEN, "idle_all", config_effect_has_idle, HANDLER("idle")},
    {OPTION_LISTEN, "idle_action", config_effect_has_idle, HANDLER("idle")},
    {OPTION_LISTEN, "executor_delay", config_effect_has_executor, HANDLER("executor")},
    {OPTION_LISTEN, "unix_mode", config_effect_has_socket_file, NO_SOCKET_FILE},
    {OPTION_LISTEN, "unix_user", config_effect_has_socket_file, NO_SOCKET_FILE},
    {OPTION_LISTEN, "unix_group", config_effect_has_socket_file, NO_SOCKET_FILE},
    {OPTION_LISTEN, "client_hello_timeout", config_routes_wanted, NO_ROUTES},
    {OPTION_LISTEN, "client_hello_timeout", config_effect_passes_tls,
     "has no effect with tls (set handshake_timeout)"},
    {OPTION_LISTEN, "trusted_proxies", config_effect_reads_proxy_header, NO_PROXY_HEADER},
    {OPTION_LISTEN, "proxy_header_timeout", config_effect_reads_proxy_header, NO_PROXY_HEADER},
    {OPTION_LISTEN, "fault_drop_as", config_effect_has_fault, NO_FAULT},
    {OPTION_LISTEN, "fault_percent", config_effect_has_fault, NO_FAULT},
    {OPTION_LISTEN, "fault_clients", config_effect_has_fault, NO_FAULT},
    {OPTION_LISTEN, "fault_seed", config_effect_has_fault, NO_FAULT},
    {OPTION_LISTEN, "access_log_format", config_effect_has_access_log, NO_ACCESS_LOG},
    {OPTION_LISTEN, "access_log_interval", config_effect_has_access_log, NO_ACCESS_LOG},
    {OPTION_LISTEN, "tls_start", config_effect_listens_with_tls, NO_TLS},
    {OPTION_LISTEN, "handshake_timeout", config_effect_listens_with_tls, NO_TLS},

    {OPTION_UPSTREAM, "hash_balance_factor", config_effect_hashes,
     "has no effect: balance does not hash (set balance = source_hash or maglev)"},
    {OPTION_UPSTREAM, "eject_resets", config_effect_ejects, NO_EJECTION},
    {OPTION_UPSTREAM, "eject_time", config_effect_ejects, NO_EJECTION},
    {OPTION_UPSTREAM, "eject_time_max", config_effect_ejects, NO_EJECTION},
    {OPTION_UPSTREAM, "eject_max_percent", config_effect_ejects, NO_EJECTION},
    {OPTION_UPSTREAM, "check_send", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "check_expect", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "check_interval", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "check_fast_interval", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "check_jitter", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "check_timeout", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "rise", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "fall", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "initial_state", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "on_down", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "on_down_rate", config_effect_has_checks, NO_CHECKS},
    {OPTION_UPSTREAM, "spare_max_age", config_effect_has_spares,
     "has no effect without spare connections (set spare)"},
    {OPTION_UPSTREAM, "send_proxy_tlvs", config_effect_sends_tlvs,
     "has no effect: no version 2 PROXY header is sent (set send_proxy = v2)"},
    {OPTION_UPSTREAM, "tls_name", config_effect_connects_with_tls, NO_TLS},
    {OPTION_UPSTREAM, "spare", config_effect_may_have_spares,
     "has no effect with tls and send_proxy: the PROXY header comes before TLS, and names the client"},

    {OPTION_TLS, "key", config_effect_has_certificate, NO_CERTIFICATE},
    {OPTION_TLS, "unknown_name", config_effect_has_certificate, NO_CERTIFICATE},
    {OPTION_TLS, "ocsp_file", config_effect_has_certificate, NO_CERTIFICATE},
    {OPTION_TLS, "ticket_keys", config_effect_has_certificate, NO_CERTIFICATE},
    {OPTION_TLS, "ca", config_effect_verifies, NO_VERIFY},
    {OPTION_TLS, "client_ca", config_effect_verifies, NO_VERIFY},
    {OPTION_TLS, "client_crl", config_effect_has_client_ca,
     "has no effect without client_ca: clients are asked for no certificate"},
    {OPTION_TLS, "client_crl", config_effect_verifies, NO_VERIFY},
    {OPTION_TLS, "server_crl", config_effect_verifies, NO_VERIFY},
};

const char *config_effect_missing(const struct config_section *section, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].section == section->kind && strcmp(rows[i].key, key) == 0 &&
            !rows[i].applies(section))
            return rows[i].missing;
    return NULL;
}

void config_effect_check(const struct config_section *section, struct diagnostics *diagnostics)
{
    for (unsigned i = 0; section->source && i < section->source->n_entries; i++) {
        const struct ini_entry *entry = &section->source->entries[i];
        const char *missing;

        if (entry->refused || entry->value[0] == '\0')
            continue;
        missing = config_effect_missing(section, entry->key);
        if (missing)
            diagnostics_add(diagnostics, entry->line, "[%s] %s: %s", section->source->name,
                            entry->key, missing);
    }
}
