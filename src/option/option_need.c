#include "option/option_need.h"

#include <string.h>

#include "base/must.h"
#include "option/process_conf.h"
#include "option/option_routes.h"
#include "handlers/pipeline_template.h"
#include "ini/diagnostics.h"
#include "listen/listener.h"
#include "net/address.h"
#include "tls/tls_conf.h"
#include "upstream/upstream.h"

static const struct listener_conf *option_need_listener_conf(const struct section *section)
{
    return section->conf;
}

static bool option_need_has_handler(const struct section *section, const char *name)
{
    return pipeline_template_has(&option_need_listener_conf(section)->pipeline, name);
}

static bool option_need_has_frame(const struct section *section)
{
    return option_need_has_handler(section, "frame");
}

static bool option_need_has_idle(const struct section *section)
{
    return option_need_has_handler(section, "idle");
}

static bool option_need_has_executor(const struct section *section)
{
    return option_need_has_handler(section, "executor");
}

static bool option_need_frames_by(const struct section *section, enum frame_decoder_by by)
{
    return option_need_listener_conf(section)->pipeline.frame.decoder.by == by;
}

static bool option_need_by_length(const struct section *section)
{
    return option_need_frames_by(section, FRAME_DECODER_LENGTH);
}

static bool option_need_by_text_length(const struct section *section)
{
    return option_need_frames_by(section, FRAME_DECODER_TEXT_LENGTH);
}

static bool option_need_by_any_length(const struct section *section)
{
    return option_need_by_length(section) || option_need_by_text_length(section);
}

static bool option_need_by_delimiter(const struct section *section)
{
    return option_need_frames_by(section, FRAME_DECODER_DELIMITER);
}

/* A missing service is a problem of its own. */
static bool option_need_connects(const struct section *section)
{
    return option_need_listener_conf(section)->service == LISTENER_PROXY ||
           !section_entry(section, "service");
}

/* The default has no effect without a rule either, but does no harm. */
static bool option_need_denies(const struct section *section)
{
    const struct listener_conf *conf = option_need_listener_conf(section);

    return conf->on_deny == ADMISSION_RESET || section_has_value(section, "access_rules") ||
           section_has_value(section, "deny") || section_has_value(section, "allow") ||
           option_routes_refuse(conf);
}

static bool option_need_has_access_log(const struct section *section)
{
    const struct listener_access_log_conf *conf = &option_need_listener_conf(section)->access_log;

    return conf->n_names > 0 || strcmp(conf->own.where, "off") != 0;
}

static bool option_need_has_own_access_log(const struct section *section)
{
    return option_need_listener_conf(section)->access_log.n_names == 0;
}

static bool option_need_logs_all(const struct section *section)
{
    return ((const struct listener_log_conf *)section->conf)->filter.only == ACCESS_LOG_ALL;
}

static bool option_need_has_socket_file(const struct section *section)
{
    const struct listener_conf *conf = option_need_listener_conf(section);

    for (unsigned i = 0; i < conf->n_addresses; i++)
        if (address_is_unix(&conf->addresses[i]) && conf->addresses[i].u.un.sun_path[0] != '\0')
            return true;
    return false;
}

static bool option_need_reads_proxy_header(const struct section *section)
{
    return option_need_listener_conf(section)->accept_proxy.mode != PROXY_PROTOCOL_OFF;
}

static bool option_need_has_own_limits(const struct section *section)
{
    return !option_need_listener_conf(section)->limits;
}

static bool option_need_shares_bans(const struct section *section)
{
    return ((const struct limits_conf *)section->conf)->ban.offences > 0;
}

static bool option_need_bans(const struct section *section)
{
    return option_need_listener_conf(section)->ban.offences > 0;
}

static const struct admin_conf *option_need_admin_conf(const struct section *section)
{
    return section->conf;
}

static bool option_need_has_admin(const struct section *section)
{
    return option_need_admin_conf(section)->n_addresses > 0;
}

static bool option_need_admin_has(const struct section *section, bool is_unix)
{
    const struct admin_conf *conf = option_need_admin_conf(section);

    for (unsigned i = 0; i < conf->n_addresses; i++)
        if (address_is_unix(&conf->addresses[i]) == is_unix)
            return true;
    return false;
}

static bool option_need_admin_has_unix(const struct section *section)
{
    return option_need_admin_has(section, true);
}

static bool option_need_admin_has_tcp(const struct section *section)
{
    return option_need_admin_has(section, false);
}

static const struct upstream_conf *option_need_upstream_conf(const struct section *section)
{
    return section->conf;
}

static bool option_need_has_checks(const struct section *section)
{
    return option_need_upstream_conf(section)->checks.kind != UPSTREAM_CHECK_OFF;
}

static bool option_need_checks_with_tls(const struct section *section)
{
    return upstream_checks_with_tls(option_need_upstream_conf(section));
}

static bool option_need_has_agent(const struct section *section)
{
    const struct upstream_conf *conf = option_need_upstream_conf(section);
    bool has = conf->agent.port > 0 || section_refused(section, "agent_check");

    for (unsigned i = 0; i < conf->n_servers && !has; i++)
        has = upstream_has_agent(conf, &conf->servers[i]);
    return has;
}

static bool option_need_has_checks_or_agent(const struct section *section)
{
    return option_need_has_checks(section) || option_need_has_agent(section);
}

static bool option_need_checks_http(const struct section *section)
{
    return option_need_upstream_conf(section)->checks.kind == UPSTREAM_CHECK_HTTP;
}

static bool option_need_checks_send(const struct section *section)
{
    enum upstream_check kind = option_need_upstream_conf(section)->checks.kind;

    return kind == UPSTREAM_CHECK_TCP || kind == UPSTREAM_CHECK_TLS;
}

static bool option_need_checks_expect(const struct section *section)
{
    return option_need_upstream_conf(section)->checks.kind < UPSTREAM_CHECK_STEPS;
}

static bool option_need_checks_step(const struct section *section)
{
    return option_need_upstream_conf(section)->checks.kind == UPSTREAM_CHECK_STEPS;
}

static bool option_need_checks_user(const struct section *section)
{
    enum upstream_check kind = option_need_upstream_conf(section)->checks.kind;

    return kind == UPSTREAM_CHECK_PGSQL || kind == UPSTREAM_CHECK_MYSQL;
}

static bool option_need_ejects(const struct section *section)
{
    return option_need_upstream_conf(section)->ejection.failures > 0;
}

static bool option_need_hashes(const struct section *section)
{
    enum balancer_kind kind = option_need_upstream_conf(section)->balance;

    return kind == BALANCER_SOURCE_HASH || kind == BALANCER_MAGLEV;
}

static bool option_need_sends_tlvs(const struct section *section)
{
    const struct upstream_conf *conf = option_need_upstream_conf(section);
    bool sends = conf->send_proxy.version == PROXY_HEADER_V2;

    for (unsigned i = 0; i < conf->n_servers && !sends; i++)
        sends = upstream_send_proxy(conf, &conf->servers[i]).version == PROXY_HEADER_V2;
    return sends;
}

static bool option_need_passes_tls(const struct section *section)
{
    return option_need_listener_conf(section)->tls.n_names == 0;
}

static bool option_need_listens_with_tls(const struct section *section)
{
    return option_need_listener_conf(section)->tls.n_names > 0;
}

static bool option_need_connects_with_tls(const struct section *section)
{
    return option_need_upstream_conf(section)->tls.name;
}

static const struct tls_profile_conf *option_need_tls_conf(const struct section *section)
{
    return &((const struct tls_conf *)section->conf)->profile;
}

static bool option_need_has_certificate(const struct section *section)
{
    return option_need_tls_conf(section)->certificates.n > 0;
}

static bool option_need_has_client_ca(const struct section *section)
{
    return option_need_tls_conf(section)->client_ca;
}

static bool option_need_verifies(const struct section *section)
{
    return option_need_tls_conf(section)->verify != TLS_VERIFY_OFF;
}

#define HANDLER(name)  "needs the handler " name " (pipeline = " name ", or a list with it)"
#define FRAME_BY(by)   "needs frame_by = " by
#define NO_SOCKET_FILE "has no effect without a unix socket (set an address such as /run/x.sock)"
#define NO_TLS         "has no effect without TLS (set tls)"
#define NO_VERIFY      "has no effect with verify = off"

#define NEED(name, is_met, key, missing, first) \
    const struct option_need option_need_##name = {is_met, key, missing, first}

NEED(admin_unix, option_need_admin_has_unix, "address", NO_SOCKET_FILE, NULL);
NEED(admin_tcp, option_need_admin_has_tcp, "address",
     "has no effect without a TCP address (set address)", NULL);
static const struct option_need needs_servers = {
    option_need_connects, "service",
    "has no effect: service = echo connects to no server (set service = proxy)", NULL};
NEED(connect_on, option_need_passes_tls, NULL,
     "has no effect with tls: a server is connected after the handshake", &needs_servers);
NEED(denials, option_need_denies, NULL,
     "has no effect: no client is denied (set allow, deny, access_rules or a route to refuse)",
     NULL);
NEED(admin, option_need_has_admin, "address",
     "has no effect without an admin interface (set address)", NULL);
NEED(proxy, option_need_connects, "service",
     "has no effect: service = echo connects to no server (service = proxy, or no upstream)", NULL);
NEED(frame, option_need_has_frame, "pipeline", HANDLER("frame"), NULL);
NEED(frame_length, option_need_by_length, "frame_by", FRAME_BY("length"), &option_need_frame);
NEED(frame_any_length, option_need_by_any_length, "frame_by", FRAME_BY("length or text_length"),
     &option_need_frame);
NEED(frame_text_length, option_need_by_text_length, "frame_by", FRAME_BY("text_length"),
     &option_need_frame);
NEED(frame_delimiter, option_need_by_delimiter, "frame_by", FRAME_BY("delimiter"),
     &option_need_frame);
NEED(idle, option_need_has_idle, "pipeline", HANDLER("idle"), NULL);
NEED(executor, option_need_has_executor, "pipeline", HANDLER("executor"), NULL);
NEED(socket_file, option_need_has_socket_file, "address", NO_SOCKET_FILE, NULL);
static const struct option_need needs_routes = {
    option_routes_wanted, NULL, "has no effect without routes (set route.ID)", NULL};
NEED(client_hello, option_need_passes_tls, NULL, "has no effect with tls (set handshake_timeout)",
     &needs_routes);
NEED(proxy_header, option_need_reads_proxy_header, "accept_proxy",
     "has no effect: no PROXY header is read (set accept_proxy = optional or required)", NULL);
#define NO_BAN "has no effect: no client is banned (set ban, such as 10m after 100 in 10s)"
NEED(own_limits, option_need_has_own_limits, "limits",
     "has no effect beside limits (set it in that [limits NAME])", NULL);
NEED(ban, option_need_bans, "ban", NO_BAN, &option_need_own_limits);
NEED(shared_ban, option_need_shares_bans, "ban", NO_BAN, NULL);
NEED(access_log, option_need_has_access_log, "access_log",
     "has no effect without an access log (set access_log)", NULL);
NEED(own_access_log, option_need_has_own_access_log, "access_log",
     "has no effect: each [access_log NAME] has a format (set format there)",
     &option_need_access_log);
NEED(every_connection, option_need_logs_all, "only",
     "has no effect: the condition is known only at the end (set only = all)", NULL);
NEED(client_tls, option_need_listens_with_tls, "tls", NO_TLS, NULL);
NEED(hash, option_need_hashes, "balance",
     "has no effect: balance does not hash (set balance = source_hash or maglev)", NULL);
NEED(ejection, option_need_ejects, "eject_failures",
     "has no effect without ejection (set eject_failures)", NULL);
NEED(checks, option_need_has_checks, "check",
     "has no effect without health checks (set check = tcp)", NULL);
NEED(check_tls, option_need_checks_with_tls, "check_tls",
     "has no effect without TLS in checks (set check_tls)", &option_need_checks);
NEED(agent, option_need_has_agent, NULL, "has no effect without agents (set agent_check)", NULL);
NEED(checks_or_agent, option_need_has_checks_or_agent, "check",
     "has no effect without health checks or agents (set check = tcp or agent_check)", NULL);
NEED(http_checks, option_need_checks_http, "check",
     "has no effect without HTTP checks (set check = http)", &option_need_checks);
NEED(send_checks, option_need_checks_send, "check",
     "has no effect with this check (set check = tcp or tls)", &option_need_checks);
NEED(expect_checks, option_need_checks_expect, "check",
     "has no effect with this check (set check = tcp, tls or http)", &option_need_checks);
NEED(step_checks, option_need_checks_step, "check",
     "has no effect without checks in steps (set check = steps)", &option_need_checks);
NEED(user_checks, option_need_checks_user, "check",
     "has no effect with this check (set check = pgsql or mysql)", &option_need_checks);
NEED(tlvs, option_need_sends_tlvs, "send_proxy",
     "has no effect: no version 2 PROXY header is sent (set send_proxy = v2)", NULL);
NEED(server_tls, option_need_connects_with_tls, "tls", NO_TLS, NULL);
NEED(certificate, option_need_has_certificate, "certificate",
     "has no effect without a certificate (set certificate)", NULL);
NEED(verify, option_need_verifies, "verify", NO_VERIFY, NULL);
static const struct option_need needs_client_ca = {
    option_need_has_client_ca, "client_ca",
    "has no effect without client_ca: clients are asked for no certificate", NULL};
NEED(client_ca, option_need_verifies, "verify", NO_VERIFY, &needs_client_ca);

const char *option_need_missing(const struct option_need *need, const struct section *section)
{
    const char *missing;

    if (!need)
        return NULL;
    missing = option_need_missing(need->first, section);
    if (missing)
        return missing;
    if (need->is_met(section) || (need->key && section_refused(section, need->key)))
        return NULL;
    return need->missing;
}

void option_need_check(const struct section *section, struct diagnostics *diagnostics)
{
    for (unsigned i = 0; section->source && i < section->source->n_entries; i++) {
        const struct ini_entry *entry = &section->source->entries[i];
        const struct option *o = option_find(section->kind, entry->key);
        const char *missing;

        if (!o || entry->refused || entry->value[0] == '\0')
            continue;
        missing = option_need_missing(o->need, section);
        if (missing)
            diagnostics_add(diagnostics, entry->line, "[%s] %s: %s", section->source->name,
                            entry->key, missing);
    }
}
