#include "ini/foreign_words.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/must.h"

/*
 * Sources: HAProxy 3.0, configuration.txt; nginx, ngx_stream_*_module; Envoy,
 * config.cluster.v3.Cluster.
 */
static const struct foreign_word words[] = {
    {FOREIGN_WORDS_SECTION, "frontend", "[listen NAME]"},
    {FOREIGN_WORDS_SECTION, "server", "[listen NAME]"},
    {FOREIGN_WORDS_SECTION, "backend", "[upstream NAME]"},
    {FOREIGN_WORDS_SECTION, "cluster", "[upstream NAME]"},
    {FOREIGN_WORDS_SECTION, "global", "[reactord]"},
    {FOREIGN_WORDS_SECTION, "main", "[reactord]"},
    {FOREIGN_WORDS_SECTION, "events", "[worker]"},
    {FOREIGN_WORDS_SECTION, "crt-store", "[tls NAME]"},
    {FOREIGN_WORDS_SECTION, "ssl", "[tls NAME]"},

    {"listen", "bind", "address"},
    {"listen", "port", "address"},
    {"listen", "mode", "service"},
    {"listen", "default_backend", "upstream"},
    {"listen", "use_backend", "route.ID"},
    {"listen", "ssl_preread", "route.ID"},
    {"listen", "preread_timeout", "client_hello_timeout"},
    {"listen", "proxy_pass", "upstream"},
    {"listen", "backend", "upstream"},
    {"listen", "maxconn", "max_connections"},
    {"listen", "limit_conn", "max_connections_per_client"},
    {"listen", "rate-limit", "connection_rate"},
    {"listen", "proxy_timeout", "idle_timeout"},
    {"listen", "timeout", "idle_timeout"},
    {"listen", "timeout client", "idle_timeout"},
    {"listen", "timeout tunnel", "idle_timeout"},
    {"listen", "timeout client-fin", "half_close_timeout"},
    {"listen", "timeout connect", "connect_timeout in [upstream NAME]"},
    {"listen", "timeout server", "idle_timeout"},
    {"listen", "proxy_download_rate", "bandwidth_out"},
    {"listen", "proxy_upload_rate", "bandwidth_in"},
    {"listen", "accept-proxy", "accept_proxy = required, with trusted_proxies"},
    {"listen", "set_real_ip_from", "trusted_proxies"},
    {"listen", "so_keepalive", "keepalive"},
    {"listen", "clitcpka", "keepalive"},
    {"listen", "tcp_nodelay", "nodelay"},
    {"listen", "rcvbuf", "receive_buffer"},
    {"listen", "sndbuf", "send_buffer"},
    {"listen", "tcp-ut", "user_timeout"},
    {"listen", "log_format", "access_log_format"},
    {"listen", "log-format", "access_log_format"},
    {"listen", "ssl", "tls = NAME, with a section [tls NAME]"},
    {"listen", "crt", "certificate in [tls NAME]"},
    {"listen", "ssl_certificate", "certificate in [tls NAME]"},
    {"listen", "ssl_certificate_key", "key in [tls NAME]"},
    {"listen", "ssl_protocols", "min_version in [tls NAME]"},
    {"listen", "ssl_ciphers", "ciphers in [tls NAME]"},
    {"listen", "ssl_handshake_timeout", "handshake_timeout"},

    {"upstream", "server", "server.ID = ADDRESS"},
    {"upstream", "leastconn", "balance = least_connections"},
    {"upstream", "least_conn", "balance = least_connections"},
    {"upstream", "roundrobin", "balance = round_robin"},
    {"upstream", "random", "balance = random"},
    {"upstream", "ip_hash", "balance = source_hash"},
    {"upstream", "hash", "hash_key, with balance = source_hash"},
    {"upstream", "hash-balance-factor", "hash_balance_factor"},
    {"upstream", "lb_policy", "balance"},
    {"upstream", "health_check", "check = tcp"},
    {"upstream", "httpchk", "check = http"},
    {"upstream", "inter", "check_interval"},
    {"upstream", "fastinter", "check_fast_interval"},
    {"upstream", "agent-port", "agent_check"},
    {"upstream", "agent_port", "agent_check"},
    {"upstream", "agent-inter", "agent_interval"},
    {"upstream", "maxconn", "max_connections=N after the address of a server"},
    {"upstream", "max_conns", "max_connections=N after the address of a server"},
    {"upstream", "max_connections", "max_connections=N after the address of a server"},
    {"upstream", "weight", "weight=N after the address of a server"},
    {"upstream", "disabled", "disabled after the address of a server"},
    {"upstream", "backup", "backup after the address of a server"},
    {"upstream", "max_fails", "eject_failures"},
    {"upstream", "error-limit", "eject_failures"},
    {"upstream", "fail_timeout", "eject_time"},
    {"upstream", "slowstart", "slow_start"},
    {"upstream", "maxqueue", "queue_length"},
    {"upstream", "abortonclose", "queue_abandoned = drop"},
    {"upstream", "hold", "resolve_hold"},
    {"upstream", "hold nx", "resolve_hold"},
    {"upstream", "redispatch", "retries"},
    {"upstream", "proxy_connect_timeout", "connect_timeout"},
    {"upstream", "timeout connect", "connect_timeout"},
    {"upstream", "timeout server", "idle_timeout in [listen NAME]"},
    {"upstream", "timeout check", "check_timeout"},
    {"upstream", "timeout queue", "queue_timeout"},
    {"upstream", "proxy_next_upstream_tries", "retries"},
    {"upstream", "proxy_next_upstream_timeout", "retry_timeout"},
    {"upstream", "proxy_protocol", "send_proxy"},
    {"upstream", "send-proxy", "send_proxy = v1"},
    {"upstream", "send-proxy-v2", "send_proxy = v2"},
    {"upstream", "source", "source_address"},
    {"upstream", "proxy_bind", "source_address"},
    {"upstream", "on-marked-down", "on_down"},
    {"upstream", "on-marked-up", "on_up"},
    {"upstream", "pool-max-conn", "spare"},
    {"upstream", "srvtcpka", "keepalive"},
    {"upstream", "ssl", "tls = NAME, with a section [tls NAME]"},
    {"upstream", "proxy_ssl", "tls = NAME, with a section [tls NAME]"},
    {"upstream", "proxy_ssl_name", "tls_name"},
    {"upstream", "sni", "tls_name"},
    {"upstream", "verifyhost", "tls_name"},
    {"upstream", "proxy_ssl_trusted_certificate", "ca in [tls NAME]"},

    {"tls", "crt", "certificate"},
    {"tls", "ssl_certificate", "certificate"},
    {"tls", "proxy_ssl_certificate", "certificate"},
    {"tls", "ssl_certificate_key", "key"},
    {"tls", "proxy_ssl_certificate_key", "key"},
    {"tls", "strict-sni", "unknown_name = reject"},
    {"tls", "ssl_reject_handshake", "unknown_name = reject"},
    {"tls", "ssl-min-ver", "min_version"},
    {"tls", "ssl_protocols", "min_version"},
    {"tls", "ssl_ciphers", "ciphers"},
    {"tls", "ciphersuites", "ciphers"},
    {"tls", "curves", "groups"},
    {"tls", "ecdhe", "groups"},
    {"tls", "ssl_ecdh_curve", "groups"},
    {"tls", "ssl_alpn", "alpn"},
    {"tls", "ca-file", "client_ca, or ca for servers"},
    {"tls", "ssl_client_certificate", "client_ca"},
    {"tls", "proxy_ssl_trusted_certificate", "ca"},
    {"tls", "crl-file", "client_crl, or server_crl for servers"},
    {"tls", "ssl_crl", "client_crl"},
    {"tls", "proxy_ssl_crl", "server_crl"},
    {"tls", "ocsp-update", "ocsp_file"},
    {"tls", "ssl_stapling_file", "ocsp_file"},
    {"tls", "tls-ticket-keys", "ticket_keys"},
    {"tls", "ssl_session_ticket_key", "ticket_keys"},
    {"tls", "ssl_verify_client", "verify"},
    {"tls", "proxy_ssl_verify", "verify"},
    {"verify", "on", "required"},
    {"verify", "yes", "required"},
    {"verify", "no", "off"},
    {"verify", "none", "off"},
    {"min_version", "TLSv1.2", "1.2"},
    {"min_version", "TLSv1.3", "1.3"},

    {"reactord", "maxconn", "max_connections"},
    {"reactord", "pidfile", "pid_file"},
    {"reactord", "pid", "pid_file"},
    {"reactord", "error_log", "log"},
    {"reactord", "uid", "user"},
    {"reactord", "gid", "group"},
    {"reactord", "hard-stop-after", "upgrade_drain_timeout, or drain_timeout at the end"},
    {"reactord", "worker_shutdown_timeout", "upgrade_drain_timeout, or drain_timeout at the end"},
    {"worker", "nbthread", "threads"},
    {"worker", "worker_processes", "threads"},
    {"worker", "concurrency", "threads"},
    {"worker", "cpu-map", "cpu_affinity"},
    {"worker", "worker_cpu_affinity", "cpu_affinity"},

    {"hash_key", "src", "client"},
    {"hash_key", "dst", "destination"},
    {"hash_key", "req.ssl_sni", "sni"},
    {"hash_key", "$remote_addr", "client"},
    {"hash_key", "$server_addr", "destination"},
    {"hash_key", "$ssl_preread_server_name", "sni"},
    {"balance", "leastconn", "least_connections"},
    {"balance", "least_conn", "least_connections"},
    {"balance", "LEAST_REQUEST", "least_connections"},
    {"balance", "roundrobin", "round_robin"},
    {"balance", "static-rr", "round_robin"},
    {"balance", "ROUND_ROBIN", "round_robin"},
    {"balance", "source", "source_hash"},
    {"balance", "hash", "source_hash"},
    {"balance", "ip_hash", "source_hash"},
    {"balance", "RING_HASH", "source_hash"},
    {"balance", "MAGLEV", "maglev"},
    {"log_level", "warn", "warning"},
    {"log_level", "err", "error"},
    {"log_level", "crit", "error"},
    {"log_level", "alert", "error"},
    {"log_level", "emerg", "error"},
    {"accept_proxy", "on", "required, with trusted_proxies"},
    {"accept_proxy", "yes", "required, with trusted_proxies"},
    {"service", "tcp", "proxy"},
    {"check", "yes", "tcp"},
    {"check", "on", "tcp"},
    {"check", "no", "off"},
    {"check", "https", "http, with check_tls"},
    {"check", "ssl", "tls"},
    {"check", "postgres", "pgsql"},
    {"check", "postgresql", "pgsql"},
    {"on_down", "shutdown-sessions", "close"},
    {"on_up", "shutdown-backup-sessions", "close"},
    {"send_proxy", "on", "v1"},
    {"send_proxy", "yes", "v1"},

    {FOREIGN_WORDS_SERVER, "maxconn", "max_connections=N"},
    {FOREIGN_WORDS_SERVER, "max_conns", "max_connections=N"},
    {FOREIGN_WORDS_SERVER, "down", "disabled"},
    {FOREIGN_WORDS_SERVER, "drain", "weight=0"},
    {FOREIGN_WORDS_SERVER, "addr", "check_address=IP"},
    {FOREIGN_WORDS_SERVER, "port", "check_port=N"},
    {FOREIGN_WORDS_SERVER, "check", "check = tcp in the section"},
    {FOREIGN_WORDS_SERVER, "inter", "check_interval=2s"},
    {FOREIGN_WORDS_SERVER, "fastinter", "check_fast_interval in the section"},
    {FOREIGN_WORDS_SERVER, "rise", "rise=N"},
    {FOREIGN_WORDS_SERVER, "fall", "fall=N"},
    {FOREIGN_WORDS_SERVER, "agent-check", "agent_check=PORT"},
    {FOREIGN_WORDS_SERVER, "no-agent-check", "agent_check=off"},
    {FOREIGN_WORDS_SERVER, "agent-port", "agent_check=PORT"},
    {FOREIGN_WORDS_SERVER, "agent-addr", "agent_check=IP:PORT"},
    {FOREIGN_WORDS_SERVER, "agent-inter", "agent_interval in the section"},
    {FOREIGN_WORDS_SERVER, "agent-send", "agent_send in the section"},
    {FOREIGN_WORDS_SERVER, "no-check", "check=off"},
    {FOREIGN_WORDS_SERVER, "no-send-proxy", "send_proxy=off"},
    {FOREIGN_WORDS_SERVER, "no-send-proxy-v2", "send_proxy=off"},
    {FOREIGN_WORDS_SERVER, "max_fails", "eject_failures in the section"},
    {FOREIGN_WORDS_SERVER, "error-limit", "eject_failures in the section"},
    {FOREIGN_WORDS_SERVER, "fail_timeout", "eject_time in the section"},
    {FOREIGN_WORDS_SERVER, "slowstart", "slow_start in the section"},
    {FOREIGN_WORDS_SERVER, "slow_start", "slow_start in the section"},
    {FOREIGN_WORDS_SERVER, "maxqueue", "queue_length in the section"},
    {FOREIGN_WORDS_SERVER, "send-proxy", "send_proxy=v1"},
    {FOREIGN_WORDS_SERVER, "send-proxy-v2", "send_proxy=v2"},
    {FOREIGN_WORDS_SERVER, "source", "source_address in the section"},
    {FOREIGN_WORDS_SERVER, "on-marked-down", "on_down in the section"},
    {FOREIGN_WORDS_SERVER, "on-marked-up", "on_up in the section"},
    {FOREIGN_WORDS_SERVER, "downinter", "check_interval in the section"},
    {FOREIGN_WORDS_SERVER, "ssl", "tls in the section"},
    {FOREIGN_WORDS_SERVER, "sni", "tls_name in the section"},
    {FOREIGN_WORDS_SERVER, "verifyhost", "tls_name in the section"},
    {FOREIGN_WORDS_SERVER, "verify", "tls in the section, with verify in [tls NAME]"},
    {FOREIGN_WORDS_SERVER, "ca-file", "tls in the section, with ca in [tls NAME]"},
    {FOREIGN_WORDS_SERVER, "crt", "tls in the section, with certificate in [tls NAME]"},
    {FOREIGN_WORDS_SERVER, "check-ssl", "check_tls in the section"},
    {FOREIGN_WORDS_SERVER, "no-check-ssl", "check_tls = off in the section"},
    {FOREIGN_WORDS_SERVER, "check-sni", "check_tls_name in the section"},
    {FOREIGN_WORDS_SERVER, "check-send-proxy", "check_send_proxy = yes in the section"},
    {FOREIGN_WORDS_SERVER, "pool-max-conn", "spare in the section"},
    {FOREIGN_WORDS_SERVER, "tcp-ut", "user_timeout in the section"},
    {FOREIGN_WORDS_SERVER, "init-addr", "resolve_required in the section"},

    {FOREIGN_WORDS_SYSLOG, "server", "syslog ADDRESS"},
    {FOREIGN_WORDS_SYSLOG, "nohostname", "host=off"},
    {FOREIGN_WORDS_SYSLOG, "len", "length=N"},
    {FOREIGN_WORDS_SYSLOG, "sample", "share in [access_log NAME]"},
    {FOREIGN_WORDS_SYSLOG, "ident", "tag=NAME"},
};

/* Words of a server line that have their value behind a blank. */
static const char *const with_value[] = {
    "agent-port",  "agent-addr", "agent-inter",   "agent-send",  "maxconn",
    "max_conns",   "addr",       "port",          "inter",       "fastinter",
    "rise",        "fall",       "max_fails",     "error-limit", "fail_timeout",
    "slowstart",   "slow_start", "maxqueue",      "source",      "on-marked-down",
    "downinter",   "sni",        "verifyhost",    "verify",      "ca-file",
    "crt",         "check-sni",  "pool-max-conn", "tcp-ut",      "init-addr",
    "on-marked-up"};

static bool foreign_words_has_value(const struct foreign_word *w)
{
    size_t i = 0;

    while (i < ARRAY_LEN(with_value) && strcmp(with_value[i], w->word) != 0)
        i++;
    return i < ARRAY_LEN(with_value) && strcmp(w->where, FOREIGN_WORDS_SERVER) == 0;
}

const struct foreign_word *foreign_words_table(size_t *n)
{
    *n = ARRAY_LEN(words);
    return words;
}

static const struct foreign_word *foreign_words_find(const char *where, const char *word,
                                                     size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const struct foreign_word *w = &words[i];

        if (strcmp(w->where, where) == 0 && strlen(w->word) == len &&
            strncasecmp(w->word, word, len) == 0)
            return w;
    }
    return NULL;
}

bool foreign_words_hint(struct foreign_words_hint *out, const char *where, const char *word,
                        size_t len)
{
    const struct foreign_word *w = foreign_words_find(where, word, len);

    if (!w)
        return false;
    snprintf(out->text, sizeof(out->text), w->here[0] == '[' ? "here it is %s" : "here it is '%s'",
             w->here);
    out->takes_value = foreign_words_has_value(w);
    return true;
}
