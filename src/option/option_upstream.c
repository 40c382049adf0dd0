/* option/option_upstream: options of [upstream NAME]. */
#include <stddef.h>

#include "base/clock.h"
#include "option/option_bytes.h"
#include "option/option_check.h"
#include "option/option_hash.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_need.h"
#include "option/option_proxy.h"
#include "option/option_server.h"
#include "option/option_socket.h"
#include "option/option_tls.h"
#include "upstream/upstream.h"

static const struct option_word balances[] = {
    {"round_robin", BALANCER_ROUND_ROBIN},
    {"least_connections", BALANCER_LEAST_CONNECTIONS},
    {"least_time", BALANCER_LEAST_TIME},
    {"random", BALANCER_RANDOM},
    {"source_hash", BALANCER_SOURCE_HASH},
    {"maglev", BALANCER_MAGLEV},
    {"first", BALANCER_FIRST},
    {NULL, 0},
};

static const struct option_word hash_keys[] = {
    {"client", UPSTREAM_HASH_CLIENT},
    {"client_port", UPSTREAM_HASH_CLIENT_PORT},
    {"sni", UPSTREAM_HASH_SNI},
    {"destination", UPSTREAM_HASH_DESTINATION},
    {NULL, 0},
};

static const struct option_word hash_servers[] = {
    {"id", UPSTREAM_HASH_ID},
    {"address", UPSTREAM_HASH_ADDRESS},
    {NULL, 0},
};

static const struct option_word failbacks[] = {
    {"yes", UPSTREAM_FAILBACK_YES},
    {"no", UPSTREAM_FAILBACK_NO},
    {NULL, 0},
};

static const struct option_word checks[] = {
    {"off", UPSTREAM_CHECK_OFF},
    {"tcp", UPSTREAM_CHECK_TCP},
    {"tls", UPSTREAM_CHECK_TLS},
    {"http", UPSTREAM_CHECK_HTTP},
    {"steps", UPSTREAM_CHECK_STEPS},
    {"redis", UPSTREAM_CHECK_REDIS},
    {"redis-master", UPSTREAM_CHECK_REDIS_MASTER},
    {"pgsql", UPSTREAM_CHECK_PGSQL},
    {"mysql", UPSTREAM_CHECK_MYSQL},
    {"smtp", UPSTREAM_CHECK_SMTP},
    {"ldap", UPSTREAM_CHECK_LDAP},
    {NULL, 0},
};

static const struct option_word check_headers[] = {
    {"auto", CHECKER_HEADER_AUTO},
    {"yes", CHECKER_HEADER_YES},
    {"no", CHECKER_HEADER_NO},
    {NULL, 0},
};

static const struct option_word agents[] = {
    {"off", 0},
    {NULL, 0},
};

static const struct option_word on_downs[] = {
    {"keep", UPSTREAM_DOWN_KEEP},
    {"close", UPSTREAM_DOWN_CLOSE},
    {NULL, 0},
};

static const struct option_word on_ups[] = {
    {"keep", UPSTREAM_UP_KEEP},
    {"close", UPSTREAM_UP_CLOSE},
    {NULL, 0},
};

static const struct option_word abandoneds[] = {
    {"drop", UPSTREAM_ABANDONED_DROP},
    {"keep", UPSTREAM_ABANDONED_KEEP},
    {NULL, 0},
};

static const struct option_word initial_states[] = {
    {"up", HEALTH_STARTS_UP},
    {"down", HEALTH_STARTS_DOWN},
    {"checked", HEALTH_STARTS_CHECKED},
    {NULL, 0},
};

static const struct option_word send_proxies[] = {
    {"off", PROXY_HEADER_NONE},
    {"v1", PROXY_HEADER_V1},
    {"v2", PROXY_HEADER_V2},
    {NULL, 0},
};

#define TLV(flag) offsetof(struct proxy_header_conf, flag)

static const struct option_word tlvs[] = {
    {"unique-id", TLV(unique_id)},
    {"crc32c", TLV(crc32c)},
    {"alpn", TLV(alpn)},
    {"authority", TLV(authority)},
    {"ssl", TLV(ssl)},
    {"certificate", TLV(certificate)},
    {NULL, 0},
};

/* option_kind_word stores an unsigned. */
_Static_assert(sizeof(enum proxy_header_version) == sizeof(unsigned), "enum proxy_header_version");
_Static_assert(sizeof(enum balancer_kind) == sizeof(unsigned), "enum balancer_kind");
_Static_assert(sizeof(enum upstream_hash_server) == sizeof(unsigned), "enum upstream_hash_server");
_Static_assert(sizeof(enum upstream_failback) == sizeof(unsigned), "enum upstream_failback");
_Static_assert(sizeof(enum upstream_check) == sizeof(unsigned), "enum upstream_check");
_Static_assert(sizeof(enum checker_header) == sizeof(unsigned), "enum checker_header");
_Static_assert(sizeof(enum upstream_on_down) == sizeof(unsigned), "enum upstream_on_down");
_Static_assert(sizeof(enum upstream_on_up) == sizeof(unsigned), "enum upstream_on_up");
_Static_assert(sizeof(enum upstream_abandoned) == sizeof(unsigned), "enum upstream_abandoned");
_Static_assert(sizeof(enum health_initial) == sizeof(unsigned), "enum health_initial");

#define UPSTREAM(field) offsetof(struct upstream_conf, field)

/* clang-format off */
static const struct option upstream_rows[] = {
    {"server.ID", &option_server, OPTION_REQUIRED | OPTION_FAMILY | OPTION_SINGLE, OPTION_LIVE, NULL,
     "ADDRESS [weight=0..256] [max_connections=1..1000000] [resolve=each|one] [check=off] [check_address=IP] [check_port=1..65535] [check_interval=10ms..1h] [rise=1..1000] [fall=1..1000] [agent_check=off|PORT|IP:PORT] [eject=off] [send_proxy=off|v1|v2] [backup] [disabled]",
     "a server, or a name that stands for one or more servers; any number, each with its own ID",
     UPSTREAM(servers), 0, 0, NULL, NULL},
    {"balance", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "round_robin",
     "round_robin, least_connections, least_time, random, source_hash, maglev or first",
     "load balancing method",
     UPSTREAM(balance), 0, 0, balances, NULL},
    {"hash_key", &option_hash_key, 0, OPTION_NEW_CONNECTIONS, "client",
     "client, client_port, sni, destination or tlv:0xNN",
     "what source_hash and maglev know a client by; tlv: a field of its PROXY header",
     UPSTREAM(hash_key), 0, 0, hash_keys, &option_need_hash},
    {"hash_server", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "id",
     "id or address", "what source_hash and maglev know a server by; address: the same on all nodes",
     UPSTREAM(hash_server), 0, 0, hash_servers, &option_need_hash},
    {"hash_balance_factor", &option_kind_number, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 101 to 10000",
     "maximum load of a server with source_hash or maglev, in percent of its share; 0: no limit",
     UPSTREAM(hash_balance_factor), 101, 10000, NULL, &option_need_hash},
    {"panic_threshold", &option_kind_percent, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 100", "minimum percentage of healthy servers; below it backups share the load; 0: off",
     UPSTREAM(panic_threshold), 0, 100, NULL, NULL},
    {"backup_when_full", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "no",
     "yes or no", "use backups also while all other servers are at max_connections",
     UPSTREAM(backup_when_full), 0, 0, NULL, NULL},
    {"failback", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "yes",
     "yes or no", "use a server that has returned before the servers in use have failed",
     UPSTREAM(failback), 0, 0, failbacks, NULL},
    {"slow_start", &option_kind_duration, 0, OPTION_LIVE, "0",
     "0 to 1h", "time for a server that has come up again to reach its full share; 0: at once",
     UPSTREAM(slow_start_ns), 0, 3600 * NS_PER_S, NULL, NULL},
    {"connect_timeout", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "5s",
     "10ms to 1h", "timeout for connecting to one server, all its addresses together",
     UPSTREAM(connect_timeout_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL, NULL},
    {"happy_eyeballs_delay", &option_kind_duration, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "250ms",
     "0, or 10ms to 2s",
     "time before the next address is tried in parallel, if a server has IPv4 and IPv6; 0: one at "
     "a time",
     UPSTREAM(connect.attempt_delay_ns), 10 * NS_PER_MS, 2 * NS_PER_S, NULL, NULL},
    {"retries", &option_kind_number, 0, OPTION_NEW_CONNECTIONS, "3",
     "0 to 15", "number of other servers to try when the first cannot be reached",
     UPSTREAM(retries), 0, BALANCER_TRIES - 1, NULL, NULL},
    {"retry_timeout", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 1h",
     "timeout for connecting to any server, all tries together; 0: connect_timeout for each try",
     UPSTREAM(retry_timeout_ns), 0, 3600 * NS_PER_S, NULL, NULL},
    {"retry_budget", &option_kind_percent, 0, OPTION_LIVE, "20",
     "0 to 100",
     "retries after a pause, for every 100 clients; 0: clients do not wait for a server to come "
     "back",
     UPSTREAM(retry_budget), 0, 100, NULL, NULL},
    {"idle_timeout", &option_kind_duration, 0, OPTION_LIVE, "0",
     "0 to 365d", "close a connection after this time without bytes from the server; 0: never",
     UPSTREAM(idle_timeout_ns), 0, 365 * NS_PER_DAY, NULL, NULL},
    {"server_closed_timeout", &option_kind_duration, OPTION_ZERO, OPTION_LIVE, "10s",
     "0, or 100ms to 365d",
     "end a connection whose server has ended its stream, after this time without bytes; 0: "
     "half_close_timeout alone",
     UPSTREAM(server_closed_timeout_ns), 100 * NS_PER_MS, 365 * NS_PER_DAY, NULL, NULL},
    {"eject_failures", &option_kind_number, 0, OPTION_LIVE, "5",
     "0 to 1000000",
     "failed connects in a row after which a server is ejected for a while; 0: never",
     UPSTREAM(ejection.failures), 0, 1000000, NULL, NULL},
    {"eject_resets", &option_kind_bool, 0, OPTION_LIVE, "no",
     "yes or no", "count a reset by the server before its first byte as a failed connect",
     UPSTREAM(ejection.resets), 0, 0, NULL, &option_need_ejection},
    {"eject_time", &option_kind_duration, 0, OPTION_LIVE, "10s",
     "10ms to 1d",
     "time of the first ejection of a server; the next one is twice as long, and so on",
     UPSTREAM(ejection.time_ns), 10 * NS_PER_MS, NS_PER_DAY, NULL, &option_need_ejection},
    {"eject_time_max", &option_kind_duration, 0, OPTION_LIVE, "5m",
     "10ms to 1d", "maximum time of an ejection",
     UPSTREAM(ejection.time_max_ns), 10 * NS_PER_MS, NS_PER_DAY, NULL, &option_need_ejection},
    {"eject_max_percent", &option_kind_percent, 0, OPTION_LIVE, "50",
     "0 to 100", "maximum percentage of servers ejected at a time",
     UPSTREAM(ejection.max_percent), 0, 100, NULL, &option_need_ejection},
    {"check", &option_kind_word, 0, OPTION_LIVE, "off",
     "off, tcp, tls, http, steps, redis, redis-master, pgsql, mysql, smtp or ldap",
     "health checks of the servers; tcp: connect to them; tls: make a TLS handshake, too; http: "
     "send a request, too; steps: those of check_step.ID; others: steps for this protocol",
     UPSTREAM(checks.kind), 0, 0, checks, NULL},
    {"check_tls", &option_kind_name, OPTION_EMPTY, OPTION_LIVE, "",
     "the NAME of a [tls NAME], or off",
     "settings for TLS in checks; off: none; empty: those of tls",
     UPSTREAM(checks.check.tls.name), 0, 0, NULL, &option_need_checks},
    {"check_tls_name", &option_tls_peer_name, OPTION_EMPTY, OPTION_LIVE, "",
     "a host name or IP address",
     "name for checks that the servers' certificates must match, also sent as SNI; empty: that of "
     "tls_name",
     UPSTREAM(checks.check.tls.server_name), 0, 0, NULL, &option_need_check_tls},
    {"check_http", &option_check_request, 0, OPTION_LIVE, "GET /",
     "a method and a path, such as GET /healthz, optionally with HTTP/1.0 or HTTP/1.1",
     "request of HTTP checks",
     UPSTREAM(checks.check.http), 0, 0, NULL, &option_need_http_checks},
    {"check_http_host", &option_check_host, OPTION_EMPTY, OPTION_LIVE, "",
     "a host name or address, optionally with a port",
     "Host of HTTP checks; empty: the name for TLS, or the host and port of each server",
     UPSTREAM(checks.check.http), 0, 0, NULL, &option_need_http_checks},
    {"check_http_header.ID", &option_check_header, OPTION_FAMILY | OPTION_EMPTY | OPTION_SECRET, OPTION_LIVE, "",
     "text without control characters",
     "a header that HTTP checks send; up to 16, with the header's name as ID",
     UPSTREAM(checks.check.http), 0, 0, NULL, &option_need_http_checks},
    {"check_http_status", &option_check_status, 0, OPTION_LIVE, "200-399",
     "codes and ranges such as 200-299,404", "status codes with which an HTTP check passes",
     UPSTREAM(checks.check.http), 0, 0, NULL, &option_need_http_checks},
    {"check_send", &option_bytes, OPTION_EMPTY | OPTION_SECRET, OPTION_LIVE, "",
     "up to 512 bytes, as text with escapes", "bytes that a health check sends; empty: none",
     UPSTREAM(checks.check.send), 0, CHECK_BYTES_MAX, NULL, &option_need_send_checks},
    {"check_expect", &option_bytes, OPTION_EMPTY, OPTION_LIVE, "",
     "up to 512 bytes, as text with escapes",
     "bytes that the answer must contain, of HTTP its body; empty: none are expected",
     UPSTREAM(checks.check.expect), 0, CHECK_BYTES_MAX, NULL, &option_need_expect_checks},
    {"check_send_proxy", &option_kind_word, 0, OPTION_LIVE, "auto",
     "auto, yes or no",
     "send a PROXY header in checks; auto: as send_proxy, but not to another check_port or "
     "check_address",
     UPSTREAM(checks.header), 0, 0, check_headers, &option_need_checks},
    {"check_step.ID", &option_check_step, OPTION_FAMILY | OPTION_EMPTY | OPTION_SECRET, OPTION_LIVE, "",
     "'connect [port N] [tls]', 'send TEXT', 'expect TEXT', 'expect ~REGEX', or either with !",
     "a step of a check, in the order of the IDs 1 to 999",
     UPSTREAM(checks.check), 0, CHECK_BYTES_MAX, NULL, &option_need_step_checks},
    {"check_user", &option_check_user, 0, OPTION_LIVE, "reactord",
     "1 to 32 letters, digits, '_', '.' and '-'",
     "user of the checks pgsql and mysql",
     UPSTREAM(checks.user), 0, 0, NULL, &option_need_user_checks},
    {"check_interval", &option_kind_duration, 0, OPTION_LIVE, "2s",
     "10ms to 1h", "time between the starts of two checks of a server",
     UPSTREAM(checks.health.interval_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL,
     &option_need_checks},
    {"check_fast_interval", &option_kind_duration, OPTION_ZERO, OPTION_LIVE, "0",
     "0, or 10ms to 1h", "check interval while a server may be changing state; 0: check_interval",
     UPSTREAM(checks.health.fast_interval_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL,
     &option_need_checks},
    {"check_jitter", &option_kind_percent, 0, OPTION_LIVE, "10",
     "0 to 100", "maximum random addition to each check interval",
     UPSTREAM(checks.health.jitter_percent), 0, 100, NULL, &option_need_checks},
    {"check_timeout", &option_kind_duration, 0, OPTION_LIVE, "1s",
     "10ms to 1h", "timeout for one check",
     UPSTREAM(checks.check.timeout_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL, &option_need_checks},
    {"rise", &option_kind_number, 0, OPTION_LIVE, "2",
     "1 to 1000", "passed checks in a row after which a server that is down is up",
     UPSTREAM(checks.health.rise), 1, 1000, NULL, &option_need_checks},
    {"fall", &option_kind_number, 0, OPTION_LIVE, "3",
     "1 to 1000", "failed checks in a row after which a server that is up is down",
     UPSTREAM(checks.health.fall), 1, 1000, NULL, &option_need_checks},
    {"initial_state", &option_kind_word, 0, OPTION_LIVE, "up",
     "up, down or checked", "state of a server before its first checks",
     UPSTREAM(checks.health.initial), 0, 0, initial_states, &option_need_checks},
    {"agent_check", &option_kind_number_or_word, OPTION_ZERO, OPTION_LIVE, "0",
     "0 or off, or 1 to 65535",
     "port of the servers' agents, which say up, down, drain, 75% and the like; 0 or off: none",
     UPSTREAM(agent.port), 1, UINT16_MAX, agents, NULL},
    {"agent_interval", &option_kind_duration, 0, OPTION_LIVE, "2s",
     "10ms to 1h", "time between two questions to an agent, and timeout of its answer",
     UPSTREAM(agent.interval_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL, &option_need_agent},
    {"agent_send", &option_bytes, OPTION_EMPTY | OPTION_SECRET, OPTION_LIVE, "",
     "up to 512 bytes, as text with escapes", "bytes to send to an agent; empty: none",
     UPSTREAM(agent.send), 0, CHECK_BYTES_MAX, NULL, &option_need_agent},
    {"on_down", &option_kind_word, 0, OPTION_LIVE, "keep",
     "keep or close", "what to do with the connections of a server that goes down",
     UPSTREAM(checks.on_down), 0, 0, on_downs, &option_need_checks_or_agent},
    {"on_up", &option_kind_word, 0, OPTION_LIVE, "keep",
     "keep or close", "what to do with the connections of backups when other servers are in use again",
     UPSTREAM(checks.on_up), 0, 0, on_ups, &option_need_checks_or_agent},
    {"on_down_rate", &option_kind_number, 0, OPTION_LIVE, "0",
     "0 to 1000000",
     "maximum number of connections per second that on_down and on_up reset; 0: all at once",
     UPSTREAM(checks.on_down_rate), 0, 1000000, NULL, &option_need_checks_or_agent},
    {"queue_length", &option_kind_number, 0, OPTION_LIVE, "1000",
     "0 to 1000000",
     "maximum number of clients waiting while all servers in use are at max_connections; 0: none",
     UPSTREAM(queue_length), 0, 1000000, NULL, NULL},
    {"queue_timeout", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "5s",
     "10ms to 1h", "maximum time of a client in the queue",
     UPSTREAM(queue_timeout_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL, NULL},
    {"queue_abandoned", &option_kind_word, 0, OPTION_LIVE, "keep",
     "drop or keep", "what to do with a client that ends its stream in the queue, behind a request",
     UPSTREAM(queue_abandoned), 0, 0, abandoneds, NULL},
};

/* Behind those of option/option_spare. */
static const struct option rest_rows[] = {
    {"resolver", &option_kind_name, OPTION_EMPTY, OPTION_LIVE, "",
     "the NAME of a [resolver NAME]",
     "name servers to ask for server names; empty: those of the system",
     UPSTREAM(resolver.name), 0, 0, NULL, NULL},
    {"resolve_interval", &option_kind_duration, OPTION_ZERO, OPTION_LIVE, "30s",
     "0, or 1s to 1d",
     "maximum time between lookups of a server's host name; 0: no repeated lookups",
     UPSTREAM(resolve_interval_ns), NS_PER_S, NS_PER_DAY, NULL, NULL},
    {"resolve_interval_min", &option_kind_duration, 0, OPTION_LIVE, "5s",
     "1s to 1d", "minimum time between lookups, however short the TTL of an answer is",
     UPSTREAM(resolve_interval_min_ns), NS_PER_S, NS_PER_DAY, NULL, NULL},
    {"resolve_hold", &option_kind_duration_or_never, OPTION_ZERO, OPTION_LIVE, "30s",
     "never, 0, or 1s to 1d",
     "time to keep the servers of a name that does not exist any more; never: always",
     UPSTREAM(resolve_hold_ns), NS_PER_S, NS_PER_DAY, NULL, NULL},
    {"resolve_required", &option_kind_bool, 0, OPTION_LIVE, "no",
     "yes or no", "start only if all server names are resolved within three seconds",
     UPSTREAM(resolve_required), 0, 0, NULL, NULL},
    {"send_proxy", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "off",
     "off, v1 or v2", "version of the PROXY protocol header to send to servers",
     UPSTREAM(send_proxy.version), 0, 0, send_proxies, NULL},
    {"send_proxy_tlvs", &option_proxy_tlvs, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "unique-id, crc32c, alpn, authority, ssl and certificate, comma-separated",
     "fields (TLVs) to add to the header of v2",
     UPSTREAM(send_proxy), 0, 0, tlvs, &option_need_tlvs},
    {"tls", &option_kind_name, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "the NAME of a [tls NAME]", "settings for TLS with servers; empty: no TLS",
     UPSTREAM(tls.name), 0, 0, NULL, NULL},
    {"tls_name", &option_tls_peer_name, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "a host name or IP address",
     "name that the servers' certificates must match, also sent as SNI; empty: the host of each "
     "server",
     UPSTREAM(tls.server_name), 0, 0, NULL, &option_need_server_tls},
    {"source_address", &option_socket_source, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "192.0.2.1, [2001:db8::1] and so on, up to 64, comma-separated",
     "addresses of this host to connect from, in turn; empty: the kernel chooses",
     UPSTREAM(connect.sock), 0, 0, NULL, NULL},
    {"source_ports", &option_socket_ports, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "LOW-HIGH, from 1024 to 65535",
     "ports to connect from, in turn, also those in TIME_WAIT; empty: the kernel chooses",
     UPSTREAM(connect.sock.ports), 0, 0, NULL, NULL},
    {"keepalive", &option_socket_keepalive, 0, OPTION_NEW_CONNECTIONS, "off",
     "off, or an idle time such as 60s, optionally with an interval and a count: 60s,10s,6",
     "TCP keepalive: idle time before the first probe, interval and number of probes",
     UPSTREAM(connect.sock.options.keepalive), 0, 0, NULL, NULL},
    {"user_timeout", &option_kind_duration, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 1ms to 1d",
     "end a connection whose peer does not acknowledge sent bytes for this time; 0: kernel default",
     UPSTREAM(connect.sock.options.user_timeout_ns), NS_PER_MS, NS_PER_DAY, NULL, NULL},
    {"nodelay", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "yes",
     "yes or no", "send small segments at once (TCP_NODELAY)",
     UPSTREAM(connect.sock.options.nodelay), 0, 0, NULL, NULL},
    {"send_buffer", &option_kind_size, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 4k to 1g", "send buffer in the kernel (SO_SNDBUF); 0: the kernel adapts it",
     UPSTREAM(connect.sock.options.send_buffer_bytes), 4096, 1 << 30, NULL, NULL},
    {"receive_buffer", &option_kind_size, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 4k to 1g", "receive buffer in the kernel (SO_RCVBUF); 0: the kernel adapts it",
     UPSTREAM(connect.sock.options.receive_buffer_bytes), 4096, 1 << 30, NULL, NULL},
};
/* clang-format on */

const struct option_rows option_upstream = {upstream_rows, ARRAY_LEN(upstream_rows)};
const struct option_rows option_upstream_rest = {rest_rows, ARRAY_LEN(rest_rows)};
