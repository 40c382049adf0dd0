#include "ini/foreign_lines.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/must.h"
#include "ini/foreign_words.h"

#define BLANKS " \t"

/* Longer than the name of any kind of section. */
#define FOREIGN_LINES_KIND_BYTES 32

#define NO_HTTP "it reads no HTTP: only streams of TCP are proxied"
#define RESOLVER                                                                                  \
    "here it is 'servers' of the [resolver NAME] that 'resolver' in [upstream NAME] names; none " \
    "is needed: without it name servers are those of /etc/resolv.conf"
#define CHECK_HTTP \
    "here they are 'check = http', 'check_http' and 'check_http_status' in [upstream NAME]"
#define CHECK_STEPS "here they are 'check = steps' and 'check_step.ID' in [upstream NAME]"
#define NO_PROGRAM  "there is none: no program is run; 'check = steps' in [upstream NAME] may do"
#define STATUS_PAGE "here it is the page / of a TCP 'address' in [admin]"
#define CLIENT_LIMITS                                                                         \
    "here they are 'max_connections_per_client' and 'connection_rate_per_client' in [listen " \
    "NAME]"
#define DRAIN \
    "here it is 'upgrade_drain_timeout' in [reactord], and 'drain_timeout' in [reactord] at the end"
#define BY_CLIENT "here it is 'balance = source_hash' in [upstream NAME]"
#define BY_KEY    "here it is 'balance = source_hash' with 'hash_key' in [upstream NAME]"

/* Sources: HAProxy 3.0, configuration.txt; nginx 1.26, ngx_core_module and ngx_stream_*_module. */
static const struct foreign_line lines[] = {
    /* Sections of HAProxy, blocks of nginx. */
    {"global", "here it is [reactord], [boss] and [worker]"},
    {"defaults", "here it is [defaults listen] and [defaults upstream], without a name"},
    {"frontend", "here it is [listen NAME]"},
    {"backend", "here it is [upstream NAME]"},
    {"listen", "here it is 'address' in [listen NAME]; a section of HAProxy is [listen NAME] and "
               "[upstream NAME]"},
    {"resolvers", RESOLVER},
    {"nameserver", RESOLVER},
    {"resolver", RESOLVER},
    {"resolver_timeout", "here it is 'timeout' in [resolver NAME]"},
    {"timeout resolve", "here it is 'resolve_interval' in [upstream NAME]"},
    {"timeout retry", "here it is 'timeout' in [resolver NAME]"},
    {"resolve_retries", "here it is 'tries' in [resolver NAME]"},
    {"parse-resolv-conf", "it is always so"},
    {"peers", "there is none: no state is shared with other hosts"},
    {"mailers", "there is none: no mail is sent"},
    {"email-alert", "there is none: no mail is sent"},
    {"userlist", NO_HTTP},
    {"stream", "leave it out: the whole file is for streams"},
    {"http", NO_HTTP},
    {"events", "leave it out: [worker] has options of threads"},
    {"upstream", "here it is [upstream NAME]"},
    {"server {", "here it is [listen NAME]"},
    {"server",
     "here it is 'server.ID = ADDRESS' in [upstream NAME]; a block of nginx is [listen NAME]"},
    {"{", "leave it out: a section ends where the next begins"},
    {"}", "leave it out: a section ends where the next begins"},

    /* The process. */
    {"daemon", "it stays in the foreground: start it by systemd, or with & in a shell"},
    {"master-worker", "none is needed: SIGHUP reloads, SIGUSR2 upgrades"},
    {"maxconn", "here it is 'max_connections' in [reactord] and in [listen NAME]"},
    {"maxconnrate", "here it is 'connection_rate' in [reactord]"},
    {"worker_connections", "here it is 'max_connections' in [reactord]"},
    {"nbthread", "here it is 'threads' in [worker]"},
    {"nbproc", "here it is 'threads' in [worker]"},
    {"worker_processes", "here it is 'threads' in [worker]"},
    {"cpu-map", "here it is 'cpu_affinity' in [worker]"},
    {"worker_cpu_affinity", "here it is 'cpu_affinity' in [worker]"},
    {"ulimit-n", "none is needed: the limit of open files is raised to the hard limit"},
    {"worker_rlimit_nofile", "none is needed: the limit of open files is raised to the hard limit"},
    {"multi_accept", "here it is 'accept_batch' in [boss]"},
    {"accept_mutex", "none is needed: one thread accepts, see 'threads' in [boss]"},
    {"use", "none is needed: it is always epoll"},
    {"user", "here it is 'user' in [reactord]"},
    {"group", "here it is 'group' in [reactord]"},
    {"chroot", "here it is 'chroot' in [reactord]"},
    {"pidfile", "here it is 'pid_file' in [reactord]"},
    {"pid", "here it is 'pid_file' in [reactord]"},
    {"load_module", "there is none: all is built in"},
    {"lua-load", "there is none: there are no scripts"},
    {"server-state-file", "none is needed: reloads and upgrades keep states and weights"},
    {"load-server-state-from-file", "none is needed: reloads and upgrades keep states and weights"},
    {"spread-checks", "here it is 'check_jitter' in [upstream NAME]"},
    {"include", "here it is 'include = PATH', before the first section"},

    /* Statistics. */
    {"stats socket", "here it is 'address' in [admin], for reactorctl(1)"},
    {"stats timeout", "here it is 'request_timeout' in [admin]"},
    {"stats maxconn", "here it is 'max_connections' in [admin]"},
    {"stats auth", "here it is 'token_file' in [admin]"},
    {"stats admin", "here it is 'write' in [admin]"},
    {"stats enable", STATUS_PAGE},
    {"stats uri", STATUS_PAGE},
    {"stats refresh", STATUS_PAGE},
    {"stats", STATUS_PAGE},
    {"stub_status", STATUS_PAGE},
    {"monitor-uri", "here it is /healthz and /readyz of an 'address' in [admin]"},
    {"monitor fail", "here it is /readyz of an 'address' in [admin]"},

    /* Logs. */
    {"log", "here it is 'log' in [reactord], and 'access_log' in [listen NAME]"},
    {"log global", "here it is 'access_log' in [listen NAME]; nothing is inherited"},
    {"log-format", "here it is 'access_log_format' in [listen NAME]"},
    {"log_format", "here it is 'access_log_format' in [listen NAME]"},
    {"access_log", "here it is 'access_log' in [listen NAME]"},
    {"error_log", "here it is 'log' in [reactord]"},
    {"option tcplog", "here it is 'access_log' in [listen NAME]"},
    {"option httplog", "it reads no HTTP; 'access_log' in [listen NAME] has connections"},
    {"option dontlognull", "here it is 'only = data' in [access_log NAME]"},
    {"option dontlog-normal", "here it is 'only = errors' in [access_log NAME]"},
    {"option log-separate-errors",
     "here it is 'only = errors' in [access_log NAME], beside another one"},
    {"option logasap", "here it is 'at_connect' in [access_log NAME]"},
    {"option log-health-checks", "it is always so: 'log' in [reactord] has each change of state"},

    /* Listeners. */
    {"mode tcp", "here it is 'service = proxy' in [listen NAME]"},
    {"mode http", NO_HTTP},
    {"bind", "here it is 'address' in [listen NAME]"},
    {"default_backend", "here it is 'upstream' in [listen NAME]"},
    {"use_backend", "here it is 'route.ID' in [listen NAME]"},
    {"proxy_pass", "here it is 'upstream' in [listen NAME]"},
    {"ssl_preread", "here it is 'route.ID' in [listen NAME]"},
    {"preread_timeout", "here it is 'client_hello_timeout' in [listen NAME]"},
    {"server_name", "here they are 'route.ID' in [listen NAME], and 'names' in [tls NAME]"},
    {"map", "there is none, but 'route.ID' in [listen NAME] has conditions"},
    {"map $ssl_preread_server_name", "here it is 'route.ID' in [listen NAME]"},
    {"map $ssl_preread_protocol", "here it is 'route.ID' in [listen NAME]"},
    {"split_clients", "here it is 'route.ID' in [listen NAME], with shares"},
    {"geo", "there is none, but 'access_rules' in [listen NAME], and 'route.ID' in [listen NAME]"},
    {"acl", "there are no named conditions: 'access_rules' in [listen NAME] has addresses, "
            "'route.ID' in [listen NAME] chooses the upstream"},
    {"allow", "here it is 'access_rules' in [listen NAME], where the order counts"},
    {"deny", "here it is 'access_rules' in [listen NAME], where the order counts"},
    {"tcp-request connection reject",
     "here it is 'deny' in [listen NAME], or 'access_rules' in [listen NAME] for an order"},
    {"tcp-request connection accept",
     "here it is 'allow' in [listen NAME], or 'access_rules' in [listen NAME] for an order"},
    {"tcp-request connection expect-proxy", "here it is 'accept_proxy' in [listen NAME]"},
    {"tcp-request connection track-sc0", CLIENT_LIMITS},
    {"tcp-request connection", "there is none but 'access_rules' in [listen NAME]"},
    {"tcp-request session", "here it is 'access_rules' in [listen NAME], also behind a proxy"},
    {"tcp-request inspect-delay", "here it is 'client_hello_timeout' in [listen NAME]"},
    {"tcp-request content accept",
     "none is needed: a 'route.ID' in [listen NAME] waits for the bytes that it asks for"},
    {"tcp-request content reject", "here it is 'route.ID' in [listen NAME], which leads to refuse"},
    {"tcp-request content", "there is none, but 'route.ID' in [listen NAME]"},
    {"tcp-response", "there is none: nothing is read in the bytes of a server"},
    {"http-request", NO_HTTP},
    {"http-response", NO_HTTP},
    {"location", NO_HTTP},
    {"cookie", NO_HTTP},
    {"errorfile", NO_HTTP},
    {"redirect", NO_HTTP},
    {"option forwardfor", "it reads no HTTP; 'send_proxy' in [upstream NAME] tells the client"},
    {"option httpclose", NO_HTTP},
    {"option http-server-close", NO_HTTP},
    {"option http-keep-alive", NO_HTTP},
    {"limit_conn", "here it is 'max_connections_per_client' in [listen NAME]"},
    {"limit_conn_dry_run", "here it is 'over_limit = log' in [listen NAME]"},
    {"limit_conn_zone", "here it is [limits NAME], if servers share it, else none is needed"},
    {"rate-limit sessions", "here it is 'connection_rate' in [listen NAME]"},
    {"filter bwlim-in", "here it is 'bandwidth_in' in [listen NAME]"},
    {"filter bwlim-out", "here it is 'bandwidth_out' in [listen NAME]"},
    {"proxy_download_rate", "here it is 'bandwidth_out' in [listen NAME]"},
    {"proxy_upload_rate", "here it is 'bandwidth_in' in [listen NAME]"},
    {"option splice-auto", "here it is 'splice = auto' in [listen NAME], the default"},
    {"option splice-request", "here it is 'splice' in [listen NAME]"},
    {"option splice-response", "here it is 'splice' in [listen NAME]"},
    {"option tcpka", "here it is 'keepalive' in [listen NAME], and 'keepalive' in [upstream NAME]"},
    {"option clitcpka", "here it is 'keepalive' in [listen NAME]"},
    {"option srvtcpka", "here it is 'keepalive' in [upstream NAME]"},
    {"proxy_socket_keepalive", "here it is 'keepalive' in [upstream NAME]"},
    {"tcp_nodelay", "here it is 'nodelay' in [listen NAME], and 'nodelay' in [upstream NAME]"},
    {"set_real_ip_from", "here it is 'trusted_proxies' in [listen NAME]"},
    {"proxy_protocol_timeout", "here it is 'proxy_header_timeout' in [listen NAME]"},
    {"proxy_half_close", "it is always so, see 'half_close_timeout' in [listen NAME]"},
    {"proxy_buffer_size", "there is none: bytes are passed on at once"},

    /* Timeouts. */
    {"timeout client", "here it is 'idle_timeout' in [listen NAME]"},
    {"timeout server", "here it is 'idle_timeout' in [listen NAME]"},
    {"timeout tunnel", "here it is 'idle_timeout' in [listen NAME]"},
    {"proxy_timeout", "here it is 'idle_timeout' in [listen NAME]"},
    {"timeout client-fin", "here it is 'half_close_timeout' in [listen NAME]"},
    {"timeout server-fin", "here it is 'half_close_timeout' in [listen NAME]"},
    {"timeout connect", "here it is 'connect_timeout' in [upstream NAME]"},
    {"proxy_connect_timeout", "here it is 'connect_timeout' in [upstream NAME]"},
    {"timeout queue", "here it is 'queue_timeout' in [upstream NAME]"},
    {"timeout check", "here it is 'check_timeout' in [upstream NAME]"},
    {"timeout http-request", NO_HTTP},
    {"timeout http-keep-alive", NO_HTTP},
    {"hard-stop-after", DRAIN},
    {"worker_shutdown_timeout", DRAIN},

    /* Servers. */
    {"default-server", "options of servers are options of [upstream NAME], for all of its servers"},
    {"server-template",
     "here it is 'server.ID = ADDRESS' in [upstream NAME], where a name is all of its addresses"},
    {"zone", "none is needed: threads share health, queue and counters"},
    {"source", "here it is 'source_address' in [upstream NAME]"},
    {"proxy_bind", "here it is 'source_address' in [upstream NAME]"},
    {"proxy_protocol", "here it is 'send_proxy = v1' in [upstream NAME]; behind listen "
                       "'accept_proxy' in [listen NAME]"},
    {"retries", "here it is 'retries' in [upstream NAME]"},
    {"proxy_next_upstream", "here it is 'retries' in [upstream NAME]"},
    {"proxy_next_upstream_tries", "here it is 'retries' in [upstream NAME]"},
    {"proxy_next_upstream_timeout", "here it is 'retry_timeout' in [upstream NAME]"},
    {"option redispatch", "it is always so: 'retries' in [upstream NAME] go to other servers"},
    {"option allbackups", "it is always so: all backups share the clients"},
    {"option independent-streams", "here they are 'client_idle_timeout' in [listen NAME] and "
                                   "'idle_timeout' in [upstream NAME]"},
    {"option persist", "there is none: a server that is down gets no clients"},
    {"fullconn", "there is none: the limit of a server, max_connections=N, is fixed"},

    /* Balance. */
    {"balance", "here it is 'balance' in [upstream NAME]"},
    {"balance roundrobin", "here it is 'balance = round_robin' in [upstream NAME]"},
    {"balance static-rr", "here it is 'balance = round_robin' in [upstream NAME]"},
    {"balance leastconn", "here it is 'balance = least_connections' in [upstream NAME]"},
    {"balance source", BY_CLIENT},
    {"balance hash", BY_KEY},
    {"balance uri", NO_HTTP},
    {"balance hdr", NO_HTTP},
    {"balance url_param", NO_HTTP},
    {"least_conn", "here it is 'balance = least_connections' in [upstream NAME]"},
    {"least_time", "here it is 'balance = least_time' in [upstream NAME]"},
    {"random", "here it is 'balance = random' in [upstream NAME]"},
    {"ip_hash", BY_CLIENT},
    {"hash $remote_addr", BY_CLIENT},
    {"hash", BY_KEY},
    {"hash-type", "none is needed: 'balance = source_hash' in [upstream NAME] is consistent"},
    {"hash-balance-factor", "here it is 'hash_balance_factor' in [upstream NAME]"},
    {"stick-table", CLIENT_LIMITS ", or 'balance' in [upstream NAME] by client"},
    {"stick on dst", "here it is 'failback = no' with 'balance = first' in [upstream NAME]"},
    {"stick", BY_CLIENT},

    /* Health. */
    {"option httpchk", CHECK_HTTP},
    {"http-check", CHECK_HTTP},
    {"option redis-check", "here it is 'check = redis' in [upstream NAME]"},
    {"option pgsql-check", "here they are 'check = pgsql' and 'check_user' in [upstream NAME]"},
    {"option smtpchk", "here it is 'check = smtp' in [upstream NAME]"},
    {"option tcp-check", CHECK_STEPS},
    {"tcp-check", CHECK_STEPS},
    {"option mysql-check", "here they are 'check = mysql' and 'check_user' in [upstream NAME]"},
    {"option ldap-check", "here it is 'check = ldap' in [upstream NAME]"},
    {"option external-check", NO_PROGRAM},
    {"external-check", NO_PROGRAM},
    {"option ssl-hello-chk", "here they are 'check = tls' and 'check_tls' in [upstream NAME]"},
    {"health_check", "here it is 'check = tcp' in [upstream NAME]"},
    {"match", CHECK_STEPS},

    /* TLS. */
    {"ssl_certificate", "here it is 'certificate' in [tls NAME]"},
    {"ssl_certificate_key", "here it is 'key' in [tls NAME]"},
    {"ssl_protocols", "here it is 'min_version' in [tls NAME]"},
    {"ssl_ciphers", "here it is 'ciphers' in [tls NAME]"},
    {"ssl_handshake_timeout", "here it is 'handshake_timeout' in [listen NAME]"},
    {"ssl_verify_client", "here it is 'verify' in [tls NAME]"},
    {"ssl_client_certificate", "here it is 'client_ca' in [tls NAME]"},
    {"ssl-default-bind-ciphers", "here it is 'ciphers' in [tls NAME]"},
    {"ssl-default-bind-ciphersuites", "here it is 'ciphers' in [tls NAME]"},
    {"ssl-default-bind-options", "here it is 'min_version' in [tls NAME]"},
    {"ssl-default-server-ciphers", "here it is 'ciphers' in [tls NAME]"},
    {"ca-base", "there is none: paths are absolute, such as 'ca' in [tls NAME]"},
    {"crt-base", "there is none: paths are absolute, such as 'certificate' in [tls NAME]"},
    {"proxy_ssl", "here it is 'tls' in [upstream NAME]"},
    {"proxy_ssl_name", "here it is 'tls_name' in [upstream NAME]"},
    {"proxy_ssl_trusted_certificate", "here it is 'ca' in [tls NAME]"},
};

const struct foreign_line *foreign_lines_table(size_t *n)
{
    *n = ARRAY_LEN(lines);
    return lines;
}

/* Return the number of words in ${phrase} if ${line} begins with them, else 0. */
static unsigned foreign_lines_match(const char *phrase, const char *line)
{
    unsigned n = 0;

    while (*phrase != '\0') {
        size_t len = strcspn(phrase, " "), there;

        line += strspn(line, BLANKS);
        there = strcspn(line, BLANKS);
        if (there > 1 && line[there - 1] == ';')
            there--;
        if (there != len || strncasecmp(phrase, line, len) != 0)
            return 0;
        n++;
        phrase += len + (phrase[len] == ' ');
        line += there;
    }
    return n;
}

const char *foreign_lines_find(const char *line, unsigned *n_words)
{
    const char *hint = NULL;

    *n_words = 0;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        unsigned n = foreign_lines_match(lines[i].phrase, line);

        if (n > *n_words) {
            *n_words = n;
            hint = lines[i].hint;
        }
    }
    return hint;
}

static size_t foreign_lines_word_end(const char *text, size_t at)
{
    at += strspn(text + at, BLANKS);
    return at + strcspn(text + at, BLANKS);
}

const char *foreign_lines_hint(struct foreign_words_hint *words, const char *section,
                               const char *line)
{
    char kind[FOREIGN_LINES_KIND_BYTES];
    size_t first = foreign_lines_word_end(line, 0);
    unsigned n_words;
    const char *hint = foreign_lines_find(line, &n_words);

    snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(section, " "), section);
    if (n_words <= 2 && foreign_words_hint(words, kind, line, foreign_lines_word_end(line, first)))
        return words->text;
    if (n_words <= 1 && foreign_words_hint(words, kind, line, first))
        return words->text;
    return hint;
}

bool foreign_lines_is_nginx(const char *line)
{
    size_t len = strlen(line);

    return len > 0 && strchr(";{}", line[len - 1]);
}
