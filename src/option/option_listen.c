/* option/option_listen: options of [listen NAME]. */
#include <stddef.h>

#include "base/clock.h"
#include "option/option_access_log.h"
#include "option/option_acl.h"
#include "option/option_ban.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_need.h"
#include "option/option_network.h"
#include "option/option_pipeline.h"
#include "option/option_proxy.h"
#include "option/option_rate.h"
#include "option/option_route.h"
#include "option/option_socket.h"
#include "option/option_tls.h"
#include "option/option_unix.h"
#include "listen/listener.h"
#include "net/splice.h"

static const struct option_word services[] = {
    {"echo", LISTENER_ECHO},
    {"proxy", LISTENER_PROXY},
    {NULL, 0},
};

static const struct option_word splice_modes[] = {
    {"auto", SPLICE_AUTO},
    {"on", SPLICE_ON},
    {"off", SPLICE_OFF},
    {NULL, 0},
};

static const struct option_word verdicts[] = {
    {"reset", ADMISSION_RESET},
    {"close", ADMISSION_CLOSE},
    {NULL, 0},
};

static const struct option_word overs[] = {
    {"wait", QUOTA_OVER_WAIT},
    {"close", QUOTA_OVER_CLOSE},
    {"reset", QUOTA_OVER_RESET},
    {"log", QUOTA_OVER_LOG},
    {NULL, 0},
};

static const struct option_word frame_bys[] = {
    {"length", FRAME_DECODER_LENGTH},
    {"text_length", FRAME_DECODER_TEXT_LENGTH},
    {"delimiter", FRAME_DECODER_DELIMITER},
    {NULL, 0},
};

static const struct option_word frame_widths[] = {
    {"1", 1}, {"2", 2}, {"3", 3}, {"4", 4}, {"8", 8}, {NULL, 0},
};

static const struct option_word frame_orders[] = {
    {"big", FRAME_DECODER_BIG},
    {"little", FRAME_DECODER_LITTLE},
    {NULL, 0},
};

static const struct option_word frame_errors[] = {
    {"close", FRAME_HANDLER_CLOSE},
    {"skip", FRAME_HANDLER_SKIP},
    {NULL, 0},
};

static const struct option_word idle_actions[] = {
    {"close", IDLE_HANDLER_CLOSE},
    {"log", IDLE_HANDLER_LOG},
    {NULL, 0},
};

static const struct option_word accept_proxies[] = {
    {"off", PROXY_PROTOCOL_OFF},
    {"optional", PROXY_PROTOCOL_OPTIONAL},
    {"required", PROXY_PROTOCOL_REQUIRED},
    {NULL, 0},
};

static const struct option_word tls_starts[] = {
    {"direct", LISTENER_TLS_DIRECT},
    {"postgres", LISTENER_TLS_POSTGRES},
    {NULL, 0},
};

static const struct option_word connect_ons[] = {
    {"accept", SESSION_CONNECT_ON_ACCEPT},
    {"first_byte", SESSION_CONNECT_ON_FIRST_BYTE},
    {NULL, 0},
};

/* option_kind_word stores an unsigned. */
_Static_assert(sizeof(enum frame_decoder_by) == sizeof(unsigned), "enum frame_decoder_by");
_Static_assert(sizeof(enum frame_decoder_order) == sizeof(unsigned), "enum frame_decoder_order");
_Static_assert(sizeof(enum frame_handler_on_error) == sizeof(unsigned), "frame_handler_on_error");
_Static_assert(sizeof(enum idle_handler_action) == sizeof(unsigned), "enum idle_handler_action");
_Static_assert(sizeof(enum proxy_protocol_mode) == sizeof(unsigned), "enum proxy_protocol_mode");
_Static_assert(sizeof(enum listener_service) == sizeof(unsigned), "enum listener_service");
_Static_assert(sizeof(enum listener_tls_start) == sizeof(unsigned), "enum listener_tls_start");
_Static_assert(sizeof(enum admission_verdict) == sizeof(unsigned), "enum admission_verdict");
_Static_assert(sizeof(enum session_connect_on) == sizeof(unsigned), "enum session_connect_on");
_Static_assert(sizeof(enum splice_mode) == sizeof(unsigned), "enum splice_mode");
_Static_assert(sizeof(enum quota_over) == sizeof(unsigned), "enum quota_over");

#define LISTEN(field) offsetof(struct listener_conf, field)
#define FRAME(field)  LISTEN(pipeline.frame.field)

/* clang-format off */
static const struct option listen_rows[] = {
    {"address", &option_network_addresses, OPTION_REQUIRED | OPTION_SINGLE, OPTION_LIVE, NULL,
     "127.0.0.1:7, [::1]:7, *:7, *:7000-7010, /run/x.sock or @name, comma-separated",
     "addresses to listen on",
     LISTEN(addresses), 0, 0, NULL, NULL},
    {"service", &option_kind_word, OPTION_REQUIRED, OPTION_NEW_CONNECTIONS, NULL,
     "echo or proxy", "service for each connection",
     LISTEN(service), 0, 0, services, NULL},
    {"upstream", &option_kind_name, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "the NAME of an [upstream NAME]", "upstream that a proxy connects to; empty: none",
     LISTEN(upstream), 0, 0, NULL, &option_need_proxy},
    {"route.ID", &option_route, OPTION_FAMILY | OPTION_EMPTY | OPTION_SINGLE, OPTION_NEW_CONNECTIONS, "",
     "sni:NAME, sni:*.NAME, alpn:PROTOCOL, src:BLOCK, tls:no|1.2|1.3, first:BYTES and after:TIME, "
     "space-separated, then -> UPSTREAM, -> UPSTREAM 90%, UPSTREAM 10% or -> refuse",
     "upstream by server name (SNI), protocol (ALPN), address, version of TLS, first bytes and "
     "silence of a client; any number, each with its own ID",
     LISTEN(routes), 0, 0, NULL, NULL},
    {"client_hello_timeout", &option_kind_duration, 0, OPTION_LIVE, "5s",
     "1ms to 1h", "time for the ClientHello, or other first bytes, of a listener with routes",
     LISTEN(client_hello_timeout_ns), NS_PER_MS, 3600 * NS_PER_S, NULL, &option_need_client_hello},
    {"connect_on", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "accept",
     "accept or first_byte", "when to connect a server: at once, or once the client sends a byte",
     LISTEN(session.connect_on), 0, 0, connect_ons, &option_need_connect_on},
    {"mirror", &option_kind_name, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "the NAME of an [upstream NAME]",
     "upstream that gets a copy of what clients send; empty: none",
     LISTEN(mirror), 0, 0, NULL, NULL},
    {"mirror_buffer", &option_kind_size, 0, OPTION_NEW_CONNECTIONS, "256k",
     "64k to 64m",
     "buffer for the mirror of one connection; when it overflows, the mirror is reset",
     LISTEN(mirror_buffer_bytes), 65536, 64 << 20, NULL, NULL},
    {"pipeline", &option_pipeline, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "log, frame, idle and executor, each at most once, in any order",
     "handlers for the bytes of clients, before the service, comma-separated; empty: none",
     LISTEN(pipeline), 0, 0, NULL, NULL},
    {"frame_by", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "length",
     "length, text_length or delimiter", "method of the handler frame to find the end of a frame",
     FRAME(decoder.by), 0, 0, frame_bys, &option_need_frame},
    {"frame_max_length", &option_kind_size, 0, OPTION_NEW_CONNECTIONS, "64k",
     "1 to 64m", "maximum length of a frame, with its length and delimiter",
     FRAME(decoder.max_length), 1, 64 << 20, NULL, &option_need_frame},
    {"frame_length_offset", &option_kind_number, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 65535", "bytes of a frame before its length field",
     FRAME(decoder.length_offset), 0, 65535, NULL, &option_need_frame_length},
    {"frame_length_width", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "4",
     "1, 2, 3, 4 or 8", "bytes of the length field",
     FRAME(decoder.length_width), 0, 0, frame_widths, &option_need_frame_length},
    {"frame_length_adjustment", &option_pipeline_adjustment, 0, OPTION_NEW_CONNECTIONS, "0",
     "-64m to 64m", "number to add to the length to get the number of bytes that follow it",
     FRAME(decoder.length_adjustment), -(64 << 20), 64 << 20, NULL, &option_need_frame_any_length},
    {"frame_strip", &option_kind_size, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 64m", "bytes to remove at the beginning of each frame",
     FRAME(decoder.strip), 0, 64 << 20, NULL, &option_need_frame_length},
    {"frame_byte_order", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "big",
     "big or little", "byte order of the length field",
     FRAME(decoder.byte_order), 0, 0, frame_orders, &option_need_frame_length},
    {"frame_length_end", &option_pipeline_length_end, 0, OPTION_NEW_CONNECTIONS, "\\x20",
     "one character that is no digit, or an escape", "character after the digits of a text length",
     FRAME(decoder.length_end), 0, 0, NULL, &option_need_frame_text_length},
    {"frame_strip_length", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "no",
     "yes or no", "remove text lengths, with their frame_length_end",
     FRAME(decoder.strip_length), 0, 0, NULL, &option_need_frame_text_length},
    {"frame_delimiter", &option_pipeline_delimiters, 0, OPTION_NEW_CONNECTIONS, "\\n",
     "1 to 8, of up to 16 bytes each, as text with escapes, comma-separated",
     "delimiters that end a frame",
     FRAME(decoder.delimiters), 0, 0, NULL, &option_need_frame_delimiter},
    {"frame_strip_delimiter", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "no",
     "yes or no", "remove delimiters",
     FRAME(decoder.strip_delimiter), 0, 0, NULL, &option_need_frame_delimiter},
    {"frame_fail_fast", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "yes",
     "yes or no", "act on a bad frame as soon as it is detected, not when all of it has arrived",
     FRAME(decoder.fail_fast), 0, 0, NULL, &option_need_frame},
    {"frame_on_error", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "close",
     "close or skip", "action on a bad frame",
     FRAME(on_error), 0, 0, frame_errors, &option_need_frame},
    {"idle_read", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 365d", "time without bytes from a client after which it is idle; 0: off",
     LISTEN(pipeline.idle.read_ns), 0, 365 * NS_PER_DAY, NULL, &option_need_idle},
    {"idle_write", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 365d", "time without bytes taken by a client after which it is idle; 0: off",
     LISTEN(pipeline.idle.write_ns), 0, 365 * NS_PER_DAY, NULL, &option_need_idle},
    {"idle_all", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 365d", "time without bytes in either direction after which a client is idle; 0: off",
     LISTEN(pipeline.idle.all_ns), 0, 365 * NS_PER_DAY, NULL, &option_need_idle},
    {"idle_action", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "close",
     "close or log", "action on an idle client",
     LISTEN(pipeline.idle.action), 0, 0, idle_actions, &option_need_idle},
    {"executor_delay", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "0",
     "0 to 1s", "time that the handler executor takes for each read, to test slow work; 0: none",
     LISTEN(pipeline.executor.delay_ns), 0, NS_PER_S, NULL, &option_need_executor},
    {"backlog", &option_kind_number, 0, OPTION_LIVE, "4096",
     "1 to 65535",
     "maximum number of connections waiting to be accepted; the kernel caps it at somaxconn",
     LISTEN(backlog), 1, 65535, NULL, NULL},
    {"reuseport", &option_kind_number, 0, OPTION_LIVE, "1",
     "1 to 64", "number of sockets for each address, for more than one boss thread",
     LISTEN(reuseport), 1, 64, NULL, NULL},
    {"unix_mode", &option_unix_mode, OPTION_EMPTY, OPTION_UPGRADE, "",
     "000 to 777, in octal",
     "permissions of unix sockets (a client needs write permission); empty: as the umask says",
     LISTEN(unix_file), 0, 0, NULL, &option_need_socket_file},
    {"unix_user", &option_unix_user, OPTION_EMPTY, OPTION_UPGRADE, "",
     "a user name or number", "owner of unix sockets; empty: the user that starts reactord",
     LISTEN(unix_file), 0, 0, NULL, &option_need_socket_file},
    {"unix_group", &option_unix_group, OPTION_EMPTY, OPTION_UPGRADE, "",
     "a group name or number", "group of unix sockets; empty: the group of the user that starts reactord",
     LISTEN(unix_file), 0, 0, NULL, &option_need_socket_file},
    {"deny", &option_access_deny, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "10.0.0.0/8, 192.0.2.1, 2001:db8::/32, unix, all or file:/path, comma-separated",
     "clients to refuse; checked before allow",
     LISTEN(access), 0, 0, NULL, NULL},
    {"allow", &option_access_allow, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "10.0.0.0/8, 192.0.2.1, 2001:db8::/32, unix, all or file:/path, comma-separated",
     "clients to accept, and no others; empty: all that are not denied",
     LISTEN(access), 0, 0, NULL, NULL},
    {"access_rules", &option_access_file, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "the absolute path of a file", "file of ordered rules, instead of allow and deny",
     LISTEN(access), 0, 0, NULL, NULL},
    {"on_deny", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "reset",
     "reset or close", "how to refuse a client",
     LISTEN(on_deny), 0, 0, verdicts, &option_need_denials},
    {"accept_proxy", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "off",
     "off, optional or required",
     "whether to read a PROXY protocol header, in which a proxy names the client",
     LISTEN(accept_proxy.mode), 0, 0, accept_proxies, NULL},
    {"trusted_proxies", &option_proxy_trusted, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "10.0.0.0/8, 192.0.2.1, 2001:db8::/32 or unix, comma-separated",
     "proxies whose PROXY header is trusted",
     LISTEN(accept_proxy.trusted), 0, 0, NULL, &option_need_proxy_header},
    {"proxy_header_timeout", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "3s",
     "1ms to 1h", "time for the PROXY header to arrive",
     LISTEN(accept_proxy.timeout_ns), NS_PER_MS, 3600 * NS_PER_S, NULL, &option_need_proxy_header},
    {"tls", &option_tls_sections, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "the NAME of a [tls NAME], or several, comma-separated",
     "certificates for TLS with clients; of several sections the one for the client's server name, "
     "else the first; empty: no TLS",
     LISTEN(tls), 0, 0, NULL, NULL},
    {"tls_start", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "direct",
     "direct or postgres",
     "when TLS begins; direct: with the first byte; postgres: when a PostgreSQL client asks for it",
     LISTEN(tls.start), 0, 0, tls_starts, &option_need_client_tls},
    {"handshake_timeout", &option_kind_duration, 0, OPTION_NEW_CONNECTIONS, "10s",
     "100ms to 1h", "time for the TLS handshake, from its first byte on",
     LISTEN(tls.handshake_timeout_ns), 100 * NS_PER_MS, 3600 * NS_PER_S, NULL,
     &option_need_client_tls},
    {"splice", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "auto",
     "auto, on or off", "move bytes inside the kernel; auto: for large reads",
     LISTEN(session.splice), 0, 0, splice_modes, NULL},
    {"idle_timeout", &option_kind_duration, 0, OPTION_LIVE, "1h",
     "0 to 365d", "close a connection after this time without bytes in either direction; 0: never",
     LISTEN(session.idle_timeout_ns), 0, 365 * NS_PER_DAY, NULL, NULL},
    {"client_idle_timeout", &option_kind_duration, 0, OPTION_LIVE, "0",
     "0 to 365d", "close a connection after this time without bytes from the client; 0: never",
     LISTEN(session.client_idle_timeout_ns), 0, 365 * NS_PER_DAY, NULL, NULL},
    {"half_close_timeout", &option_kind_duration, 0, OPTION_LIVE, "5m",
     "0 to 365d", "idle timeout after one side has closed its half; 0: idle_timeout alone",
     LISTEN(session.half_close_timeout_ns), 0, 365 * NS_PER_DAY, NULL, NULL},
    {"first_byte_timeout", &option_kind_duration, 0, OPTION_LIVE, "0",
     "0 to 365d", "time to wait for the first byte from the client; 0: no limit",
     LISTEN(session.first_byte_timeout_ns), 0, 365 * NS_PER_DAY, NULL, NULL},
    {"max_lifetime", &option_kind_duration, 0, OPTION_LIVE, "0",
     "0 to 365d", "maximum age of a connection, even if it is active; 0: no limit",
     LISTEN(session.max_lifetime_ns), 0, 365 * NS_PER_DAY, NULL, NULL},
    {"lifetime_jitter", &option_kind_percent, 0, OPTION_LIVE, "10",
     "0 to 90", "maximum reduction of max_lifetime, drawn for each connection",
     LISTEN(session.lifetime_jitter), 0, 90, NULL, NULL},
    {"linger_timeout", &option_kind_duration, 0, OPTION_LIVE, "30s",
     "0 to 365d", "reset an ending connection after this time without an acknowledgement; 0: never",
     LISTEN(session.linger.timeout_ns), 0, 365 * NS_PER_DAY, NULL, NULL},
    {"linger_max", &option_kind_duration, 0, OPTION_LIVE, "60s",
     "0 to 365d",
     "maximum time to end a connection after a timeout, a drain or a limit; 0: no limit",
     LISTEN(session.linger.max_ns), 0, 365 * NS_PER_DAY, NULL, NULL},
};

/* Behind those of option/option_fault. */
static const struct option rest_rows[] = {
    {"keepalive", &option_socket_keepalive, 0, OPTION_NEW_CONNECTIONS, "off",
     "off, or an idle time such as 60s, optionally with an interval and a count: 60s,10s,6",
     "TCP keepalive: idle time before the first probe, interval and number of probes",
     LISTEN(socket.keepalive), 0, 0, NULL, NULL},
    {"user_timeout", &option_kind_duration, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 1ms to 1d",
     "end a connection whose peer does not acknowledge sent bytes for this time; 0: kernel default",
     LISTEN(socket.user_timeout_ns), NS_PER_MS, NS_PER_DAY, NULL, NULL},
    {"nodelay", &option_kind_bool, 0, OPTION_NEW_CONNECTIONS, "yes",
     "yes or no", "send small segments at once (TCP_NODELAY)",
     LISTEN(socket.nodelay), 0, 0, NULL, NULL},
    {"send_buffer", &option_kind_size, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 4k to 1g", "send buffer in the kernel (SO_SNDBUF); 0: the kernel adapts it",
     LISTEN(socket.send_buffer_bytes), 4096, 1 << 30, NULL, NULL},
    {"receive_buffer", &option_kind_size, OPTION_ZERO, OPTION_NEW_CONNECTIONS, "0",
     "0, or 4k to 1g", "receive buffer in the kernel (SO_RCVBUF); 0: the kernel adapts it",
     LISTEN(socket.receive_buffer_bytes), 4096, 1 << 30, NULL, NULL},
    {"max_connections", &option_kind_number, 0, OPTION_LIVE, "0",
     "0 to 10000000", "maximum number of open connections of this listener; 0: no limit",
     LISTEN(quota.max_connections), 0, 10000000, NULL, NULL},
    {"connection_rate", &option_rate, 0, OPTION_NEW_CONNECTIONS, "0",
     "0, or a rate such as 100/s, 10/m or 5/h, optionally with a burst: 100/s burst=20",
     "rate limit of new connections; 0: no limit",
     LISTEN(quota.rate), 0, 0, NULL, NULL},
    {"limits", &option_kind_name, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "the NAME of a [limits NAME]",
     "limits per client and bans that listeners share, in place of the next ones; empty: none",
     LISTEN(limits), 0, 0, NULL, NULL},
    {"max_connections_per_client", &option_kind_number, 0, OPTION_LIVE, "0",
     "0 to 10000000", "maximum number of open connections from one client address; 0: no limit",
     LISTEN(clients.each.max_connections), 0, 10000000, NULL,
     &option_need_own_limits},
    {"connection_rate_per_client", &option_rate, 0, OPTION_NEW_CONNECTIONS, "0",
     "0, or a rate such as 100/s, 10/m or 5/h, optionally with a burst: 100/s burst=20",
     "rate limit of new connections from one client address; 0: no limit",
     LISTEN(clients.each.rate), 0, 0, NULL,
     &option_need_own_limits},
    {"client_prefix_v4", &option_kind_number, 0, OPTION_LIVE, "32",
     "1 to 32", "leading bits of an IPv4 address that identify a client, for the per-client limits",
     LISTEN(clients.name.prefix_v4), 1, 32, NULL,
     &option_need_own_limits},
    {"client_prefix_v6", &option_kind_number, 0, OPTION_LIVE, "64",
     "1 to 128",
     "leading bits of an IPv6 address that identify a client, for the per-client limits",
     LISTEN(clients.name.prefix_v6), 1, 128, NULL,
     &option_need_own_limits},
    {"client_table_size", &option_kind_number, 0, OPTION_LIVE, "65536",
     "1 to 16777216",
     "maximum number of client addresses to track, for the per-client limits and for bans",
     LISTEN(clients.max_clients), 1, 16777216, NULL,
     &option_need_own_limits},
    {"ban", &option_ban, 0, OPTION_NEW_CONNECTIONS, "0",
     "0, or a rule such as 10m after 100 in 10s",
     "refuse a client for a time, after a number of offences within a time; 0: never",
     LISTEN(ban), 0, 0, NULL,
     &option_need_own_limits},
    {"ban_exempt", &option_ban_exempt, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "10.0.0.0/8, 192.0.2.1 or 2001:db8::/32, comma-separated",
     "clients that are never banned",
     LISTEN(ban_exempt), 0, 0, NULL, &option_need_ban},
    {"over_limit", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "wait",
     "wait, close, reset or log", "action on a client above a limit",
     LISTEN(over_limit), 0, 0, overs, NULL},
    {"access_log", &option_access_log_list, 0, OPTION_LIVE, "off",
     "off, stderr, syslog, journal, an absolute path, or names of [access_log NAME]",
     "target of the access log, which has a line for each connection",
     LISTEN(access_log), 0, 0, option_access_log_targets, NULL},
    {"access_log_format", &option_access_log_format, 0, OPTION_LIVE, "text",
     "text, json, json:NAME,NAME or text with $NAME in it", "format of an access log line",
     LISTEN(access_log.own.format), 0, 0, NULL, &option_need_own_access_log},
    {"access_log_interval", &option_kind_duration, OPTION_ZERO, OPTION_LIVE, "0",
     "0, or 1s to 1d", "interval of further lines about an open connection; 0: none",
     LISTEN(access_log.interval_ns), NS_PER_S, NS_PER_DAY, NULL, &option_need_access_log},
    {"bandwidth_in", &option_kind_size, 0, OPTION_LIVE, "0",
     "0 to 3g",
     "bandwidth limit of one connection, from its client, in bytes per second; 0: no limit",
     LISTEN(bandwidth.each_in), 0, INT64_C(3) << 30, NULL, NULL},
    {"bandwidth_out", &option_kind_size, 0, OPTION_LIVE, "0",
     "0 to 3g",
     "bandwidth limit of one connection, to its client, in bytes per second; 0: no limit",
     LISTEN(bandwidth.each_out), 0, INT64_C(3) << 30, NULL, NULL},
    {"listener_bandwidth_in", &option_kind_size, 0, OPTION_LIVE, "0",
     "0 to 3g",
     "bandwidth limit of the listener, from all clients together, in bytes per second; 0: no limit",
     LISTEN(bandwidth.all_in), 0, INT64_C(3) << 30, NULL, NULL},
    {"listener_bandwidth_out", &option_kind_size, 0, OPTION_LIVE, "0",
     "0 to 3g",
     "bandwidth limit of the listener, to all clients together, in bytes per second; 0: no limit",
     LISTEN(bandwidth.all_out), 0, INT64_C(3) << 30, NULL, NULL},
};
/* clang-format on */

const struct option_rows option_listen = {listen_rows, ARRAY_LEN(listen_rows)};
const struct option_rows option_listen_rest = {rest_rows, ARRAY_LEN(rest_rows)};
