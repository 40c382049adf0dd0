/* daemon/option: see option.h. */
#include "daemon/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/config.h"
#include "daemon/option_bytes.h"
#include "daemon/option_cpus.h"
#include "daemon/option_kind.h"
#include "daemon/option_network.h"
#include "daemon/option_socket.h"
#include "engine/chooser.h"
#include "net/splice.h"
#include "server/listener.h"
#include "server/server.h"
#include "upstream/upstream.h"

#define DAY_NS (INT64_C(86400) * NS_PER_S)

static const struct {
    const char *name;
    const char *title;
    bool named;
} sections[OPTION_SECTIONS] = {
    [OPTION_REACTORD] = {"reactord", "[reactord]", false},
    [OPTION_BOSS] = {"boss", "[boss]", false},
    [OPTION_WORKER] = {"worker", "[worker]", false},
    [OPTION_EXECUTOR] = {"executor", "[executor]", false},
    [OPTION_LISTEN] = {"listen", "[listen NAME]", true},
    [OPTION_UPSTREAM] = {"upstream", "[upstream NAME]", true},
};

static const struct option_word log_sinks[] = {
    {"stderr", 0},
    {"syslog", 0},
    {"journal", 0},
    {NULL, 0},
};

static const struct option_word log_levels[] = {
    {"error", LOG_LEVEL_ERROR}, {"warning", LOG_LEVEL_WARNING}, {"notice", LOG_LEVEL_NOTICE},
    {"info", LOG_LEVEL_INFO},   {"debug", LOG_LEVEL_DEBUG},     {NULL, 0},
};

static const struct option_word choosers[] = {
    {"round_robin", CHOOSER_ROUND_ROBIN},
    {"least_connections", CHOOSER_LEAST_CONNECTIONS},
    {"p2c", CHOOSER_P2C},
    {NULL, 0},
};

static const struct option_word affinities[] = {
    {"off", SERVER_AFFINITY_OFF},
    {"auto", SERVER_AFFINITY_AUTO},
    {NULL, 0},
};

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

static const struct option_word balances[] = {
    {"round_robin", BALANCER_ROUND_ROBIN},
    {"least_connections", BALANCER_LEAST_CONNECTIONS},
    {"random", BALANCER_RANDOM},
    {"source_hash", BALANCER_SOURCE_HASH},
    {"maglev", BALANCER_MAGLEV},
    {"first", BALANCER_FIRST},
    {NULL, 0},
};

static const struct option_word checks[] = {
    {"off", UPSTREAM_CHECK_OFF},
    {"tcp", UPSTREAM_CHECK_TCP},
    {NULL, 0},
};

static const struct option_word on_downs[] = {
    {"keep", UPSTREAM_DOWN_KEEP},
    {"close", UPSTREAM_DOWN_CLOSE},
    {NULL, 0},
};

/* option_kind_word stores an unsigned. */
_Static_assert(sizeof(enum log_level) == sizeof(unsigned), "enum log_level");
_Static_assert(sizeof(enum chooser_kind) == sizeof(unsigned), "enum chooser_kind");
_Static_assert(sizeof(enum listener_service) == sizeof(unsigned), "enum listener_service");
_Static_assert(sizeof(enum balancer_kind) == sizeof(unsigned), "enum balancer_kind");
_Static_assert(sizeof(enum upstream_check) == sizeof(unsigned), "enum upstream_check");
_Static_assert(sizeof(enum upstream_on_down) == sizeof(unsigned), "enum upstream_on_down");
_Static_assert(sizeof(enum splice_mode) == sizeof(unsigned), "enum splice_mode");

#define REACTORD(field) offsetof(struct process_conf, field)
#define BOSS(field)     offsetof(struct server_boss_conf, field)
#define WORKER(field)   offsetof(struct server_worker_conf, field)
#define EXECUTOR(field) offsetof(struct server_executor_conf, field)
#define LISTEN(field)   offsetof(struct listener_conf, field)
#define UPSTREAM(field) offsetof(struct upstream_conf, field)

/* clang-format off */
static const struct option table[] = {
    {OPTION_REACTORD, "user", &option_kind_account, OPTION_EMPTY, "",
     "a user name or number", "user to run as; empty: the one it was started as",
     REACTORD(user), 0, 0, NULL},
    {OPTION_REACTORD, "group", &option_kind_account, OPTION_EMPTY, "",
     "a group name or number", "group to run as; empty: that of the user",
     REACTORD(group), 0, 0, NULL},
    {OPTION_REACTORD, "pid_file", &option_kind_path, OPTION_EMPTY, "",
     "an absolute path such as /run/reactord.pid",
     "file that holds the process number while reactord runs; empty: none",
     REACTORD(pid_file), 0, 0, NULL},
    {OPTION_REACTORD, "log", &option_kind_log, 0, "stderr",
     "stderr, syslog, journal or an absolute path", "where log lines go",
     REACTORD(log), 0, 0, log_sinks},
    {OPTION_REACTORD, "log_level", &option_kind_word, 0, "info",
     "error, warning, notice, info or debug", "least severe lines that are still logged",
     REACTORD(log_level), 0, 0, log_levels},
    {OPTION_REACTORD, "drain_timeout", &option_kind_duration, 0, "30s",
     "0 to 1d", "how long open connections may go on when reactord ends; 0: for ever",
     REACTORD(drain_timeout_ns), 0, DAY_NS, NULL},

    {OPTION_BOSS, "threads", &option_kind_number, 0, "1",
     "1 to 64", "threads that accept connections",
     BOSS(threads), 1, 64, NULL},
    {OPTION_BOSS, "accept_batch", &option_kind_number, 0, "64",
     "1 to 4096", "connections accepted from one socket before the next gets its turn",
     BOSS(accept_batch), 1, 4096, NULL},
    {OPTION_BOSS, "cpu_affinity", &option_cpus_affinity, 0, "off",
     "off, auto, or processor numbers such as 0-3,8",
     "processors that the threads are tied to, one each; off: none; auto: all there are",
     BOSS(cpus), 0, 0, affinities},

    {OPTION_WORKER, "threads", &option_kind_number, 0, "0",
     "0 to 256", "threads that serve connections; 0: two a processor",
     WORKER(threads), 0, 256, NULL},
    {OPTION_WORKER, "io_ratio", &option_kind_percent, 0, "50",
     "1 to 100", "share of a loop's time that is for I/O, the rest being for tasks",
     WORKER(io_ratio), 1, 100, NULL},
    {OPTION_WORKER, "task_quantum", &option_kind_duration, 0, "10ms",
     "100us to 1s", "longest time one turn of a loop spends on tasks",
     WORKER(task_quantum_ns), 100 * NS_PER_US, NS_PER_S, NULL},
    {OPTION_WORKER, "max_pending_tasks", &option_kind_number, 0, "1000000",
     "16 to 2147483647", "tasks that may wait for one loop; more are refused",
     WORKER(max_pending_tasks), 16, INT32_MAX, NULL},
    {OPTION_WORKER, "chooser", &option_kind_word, 0, "round_robin",
     "round_robin, least_connections or p2c", "how the loop of a new connection is chosen",
     WORKER(chooser), 0, 0, choosers},
    {OPTION_WORKER, "rebuild_threshold", &option_kind_number, OPTION_ZERO, "512",
     "0, or 3 to 1000000",
     "polls in a row that return early with nothing to do before a loop's epoll instance is "
     "rebuilt; 0: never",
     WORKER(rebuild_threshold), 3, 1000000, NULL},
    {OPTION_WORKER, "stall_threshold", &option_kind_duration, OPTION_ZERO, "500ms",
     "0, or 10ms to 1h",
     "a turn of a loop that takes longer is logged with what it is doing; 0: nobody looks",
     WORKER(stall_threshold_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL},
    {OPTION_WORKER, "cpu_affinity", &option_cpus_affinity, 0, "off",
     "off, auto, or processor numbers such as 0-3,8",
     "processors that the threads are tied to, one each; off: none; auto: all there are",
     WORKER(cpus), 0, 0, affinities},

    {OPTION_EXECUTOR, "threads", &option_kind_number, 0, "4",
     "1 to 64", "threads for slow work such as looking up host names",
     EXECUTOR(threads), 1, 64, NULL},
    {OPTION_EXECUTOR, "max_pending_tasks", &option_kind_number, 0, "16384",
     "16 to 2147483647", "tasks that may wait for one of these threads; more are refused",
     EXECUTOR(max_pending_tasks), 16, INT32_MAX, NULL},

    {OPTION_LISTEN, "address", &option_network_addresses, OPTION_REQUIRED, NULL,
     "127.0.0.1:7, [::1]:7, *:7, /run/x.sock or @name, with commas between",
     "addresses to listen on",
     LISTEN(addresses), 0, 0, NULL},
    {OPTION_LISTEN, "service", &option_kind_word, OPTION_REQUIRED, NULL,
     "echo or proxy", "what is done with a connection",
     LISTEN(service), 0, 0, services},
    {OPTION_LISTEN, "upstream", &option_kind_name, OPTION_EMPTY, "",
     "the NAME of an [upstream NAME]", "where a proxy connects to; empty: nowhere",
     LISTEN(upstream), 0, 0, NULL},
    {OPTION_LISTEN, "pipeline", &option_network_pipeline, OPTION_EMPTY, "",
     "log", "handlers that see the bytes first, with commas between; empty: none",
     LISTEN(log_handler), 0, 0, NULL},
    {OPTION_LISTEN, "backlog", &option_kind_number, 0, "4096",
     "1 to 65535", "connections that may wait to be accepted; the kernel caps it at somaxconn",
     LISTEN(backlog), 1, 65535, NULL},
    {OPTION_LISTEN, "reuseport", &option_kind_number, 0, "1",
     "1 to 64", "sockets that share an address, for more than one boss thread",
     LISTEN(reuseport), 1, 64, NULL},
    {OPTION_LISTEN, "splice", &option_kind_word, 0, "auto",
     "auto, on or off", "move bytes inside the kernel; auto: for large reads",
     LISTEN(splice), 0, 0, splice_modes},
    {OPTION_LISTEN, "idle_timeout", &option_kind_duration, 0, "1h",
     "0 to 365d", "close a connection on which nothing moved for so long; 0: never",
     LISTEN(idle_timeout_ns), 0, 365 * DAY_NS, NULL},
    {OPTION_LISTEN, "client_idle_timeout", &option_kind_duration, 0, "0",
     "0 to 365d", "close a connection whose client sent nothing for so long; 0: never",
     LISTEN(client_idle_timeout_ns), 0, 365 * DAY_NS, NULL},
    {OPTION_LISTEN, "half_close_timeout", &option_kind_duration, 0, "5m",
     "0 to 365d", "as idle_timeout, once one side has ended its half; 0: idle_timeout alone",
     LISTEN(half_close_timeout_ns), 0, 365 * DAY_NS, NULL},
    {OPTION_LISTEN, "first_byte_timeout", &option_kind_duration, 0, "0",
     "0 to 365d", "close a connection whose client has never sent anything so long; 0: never",
     LISTEN(first_byte_timeout_ns), 0, 365 * DAY_NS, NULL},
    {OPTION_LISTEN, "max_lifetime", &option_kind_duration, 0, "0",
     "0 to 365d", "close a connection that is so old, whatever moves on it; 0: never",
     LISTEN(max_lifetime_ns), 0, 365 * DAY_NS, NULL},
    {OPTION_LISTEN, "lifetime_jitter", &option_kind_percent, 0, "10",
     "0 to 90", "by how much max_lifetime is shortened at most, anew for each connection",
     LISTEN(lifetime_jitter), 0, 90, NULL},
    {OPTION_LISTEN, "keepalive", &option_socket_keepalive, 0, "off",
     "off, or a silence such as 60s, then if need be an interval and a count: 60s,10s,6",
     "silence after which a peer is asked whether it is still there, how often, and how many times",
     LISTEN(socket.keepalive), 0, 0, NULL},
    {OPTION_LISTEN, "user_timeout", &option_kind_duration, OPTION_ZERO, "0",
     "0, or 1ms to 1d",
     "end a connection whose peer has not acknowledged what was sent for so long; 0: as the kernel does",
     LISTEN(socket.user_timeout_ns), NS_PER_MS, DAY_NS, NULL},
    {OPTION_LISTEN, "nodelay", &option_kind_bool, 0, "yes",
     "yes or no", "send what there is at once, and do not wait to fill a segment",
     LISTEN(socket.nodelay), 0, 0, NULL},
    {OPTION_LISTEN, "send_buffer", &option_kind_size, OPTION_ZERO, "0",
     "0, or 4k to 1g", "what the kernel takes to send before it is acknowledged; 0: it adapts that",
     LISTEN(socket.send_buffer_bytes), 4096, 1 << 30, NULL},
    {OPTION_LISTEN, "receive_buffer", &option_kind_size, OPTION_ZERO, "0",
     "0, or 4k to 1g", "what the kernel takes before it is read; 0: it adapts that",
     LISTEN(socket.receive_buffer_bytes), 4096, 1 << 30, NULL},

    {OPTION_UPSTREAM, "server.ID", &option_network_server, OPTION_REQUIRED | OPTION_FAMILY, NULL,
     "ADDRESS [weight=1..256] [max_connections=1..1000000] [check_port=1..65535] [backup]", "a server; there may be many, each with its own ID",
     UPSTREAM(servers), 0, 0, NULL},
    {OPTION_UPSTREAM, "balance", &option_kind_word, 0, "round_robin",
     "round_robin, least_connections, random, source_hash, maglev or first",
     "how the server of a new connection is chosen",
     UPSTREAM(balance), 0, 0, balances},
    {OPTION_UPSTREAM, "hash_balance_factor", &option_kind_number, OPTION_ZERO, "125",
     "0, or 101 to 10000",
     "what a server may have of its share of the connections by source_hash; 0: any",
     UPSTREAM(hash_balance_factor), 101, 10000, NULL},
    {OPTION_UPSTREAM, "panic_threshold", &option_kind_percent, 0, "0",
     "0 to 100",
     "share of the servers below which, when fewer are fit, all are used; 0: never",
     UPSTREAM(panic_threshold), 0, 100, NULL},
    {OPTION_UPSTREAM, "slow_start", &option_kind_duration, 0, "0",
     "0 to 1h", "how long a server that has come up again gets less than its share",
     UPSTREAM(slow_start_ns), 0, 3600 * NS_PER_S, NULL},
    {OPTION_UPSTREAM, "connect_timeout", &option_kind_duration, 0, "5s",
     "10ms to 1h", "time to connect to one server, with all its addresses",
     UPSTREAM(connect_timeout_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL},
    {OPTION_UPSTREAM, "happy_eyeballs_delay", &option_kind_duration, OPTION_ZERO, "250ms",
     "0, or 10ms to 2s",
     "when a name has IPv4 and IPv6, how long one address is waited for alone; 0: until it fails",
     UPSTREAM(connect.attempt_delay_ns), 10 * NS_PER_MS, 2 * NS_PER_S, NULL},
    {OPTION_UPSTREAM, "retries", &option_kind_number, 0, "3",
     "0 to 15", "other servers that are tried when one cannot be reached",
     UPSTREAM(retries), 0, BALANCER_TRIES - 1, NULL},
    {OPTION_UPSTREAM, "retry_timeout", &option_kind_duration, 0, "0",
     "0 to 1h", "time to connect to any server at all; 0: connect_timeout for each",
     UPSTREAM(retry_timeout_ns), 0, 3600 * NS_PER_S, NULL},
    {OPTION_UPSTREAM, "idle_timeout", &option_kind_duration, 0, "0",
     "0 to 365d", "close a connection whose server sent nothing for so long; 0: never",
     UPSTREAM(idle_timeout_ns), 0, 365 * DAY_NS, NULL},
    {OPTION_UPSTREAM, "eject_failures", &option_kind_number, 0, "5",
     "0 to 1000000",
     "connections in a row that must fail for a server to be left out for a while; 0: never",
     UPSTREAM(ejection.failures), 0, 1000000, NULL},
    {OPTION_UPSTREAM, "eject_resets", &option_kind_bool, 0, "no",
     "yes or no", "a connection that the server resets before its first byte has failed, too",
     UPSTREAM(ejection.resets), 0, 0, NULL},
    {OPTION_UPSTREAM, "eject_time", &option_kind_duration, 0, "10s",
     "10ms to 1d", "how long the first time, twice as long the second, and so on",
     UPSTREAM(ejection.time_ns), 10 * NS_PER_MS, DAY_NS, NULL},
    {OPTION_UPSTREAM, "eject_time_max", &option_kind_duration, 0, "5m",
     "10ms to 1d", "how long at most",
     UPSTREAM(ejection.time_max_ns), 10 * NS_PER_MS, DAY_NS, NULL},
    {OPTION_UPSTREAM, "eject_max_percent", &option_kind_percent, 0, "50",
     "0 to 100", "share of the servers that are left out at a time, at most",
     UPSTREAM(ejection.max_percent), 0, 100, NULL},
    {OPTION_UPSTREAM, "check", &option_kind_word, 0, "off",
     "off or tcp", "find out by checks whether servers are up; tcp: by connecting to them",
     UPSTREAM(checks.kind), 0, 0, checks},
    {OPTION_UPSTREAM, "check_send", &option_bytes, OPTION_EMPTY, "",
     "up to 512 bytes, as text with escapes",
     "what a check sends; empty: nothing",
     UPSTREAM(checks.check.send), 0, CHECK_BYTES_MAX, NULL},
    {OPTION_UPSTREAM, "check_expect", &option_bytes, OPTION_EMPTY, "",
     "up to 512 bytes, as text with escapes",
     "what must be in the answer; empty: to connect is enough",
     UPSTREAM(checks.check.expect), 0, CHECK_BYTES_MAX, NULL},
    {OPTION_UPSTREAM, "check_interval", &option_kind_duration, 0, "2s",
     "10ms to 1h", "from one check of a server to the next",
     UPSTREAM(checks.health.interval_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL},
    {OPTION_UPSTREAM, "check_fast_interval", &option_kind_duration, OPTION_ZERO, "0",
     "0, or 10ms to 1h", "as check_interval, while some checks have failed or passed, but not enough; 0: as ever",
     UPSTREAM(checks.health.fast_interval_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL},
    {OPTION_UPSTREAM, "check_jitter", &option_kind_percent, 0, "10",
     "0 to 100", "intervals are longer by up to so much, at random",
     UPSTREAM(checks.health.jitter_percent), 0, 100, NULL},
    {OPTION_UPSTREAM, "check_timeout", &option_kind_duration, 0, "1s",
     "10ms to 1h", "how long a check may take",
     UPSTREAM(checks.check.timeout_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL},
    {OPTION_UPSTREAM, "rise", &option_kind_number, 0, "2",
     "1 to 1000", "checks in a row that must pass for a server to be up again",
     UPSTREAM(checks.health.rise), 1, 1000, NULL},
    {OPTION_UPSTREAM, "fall", &option_kind_number, 0, "3",
     "1 to 1000", "checks in a row that must fail for a server to be down",
     UPSTREAM(checks.health.fall), 1, 1000, NULL},
    {OPTION_UPSTREAM, "on_down", &option_kind_word, 0, "keep",
     "keep or close", "what becomes of the connections to a server that goes down",
     UPSTREAM(checks.on_down), 0, 0, on_downs},
    {OPTION_UPSTREAM, "on_down_rate", &option_kind_number, 0, "0",
     "0 to 1000000", "how many a second are closed by on_down = close; 0: all at once",
     UPSTREAM(checks.on_down_rate), 0, 1000000, NULL},
    {OPTION_UPSTREAM, "queue_length", &option_kind_number, 0, "1000",
     "0 to 1000000",
     "clients that may wait when every server has max_connections; 0: none",
     UPSTREAM(queue_length), 0, 1000000, NULL},
    {OPTION_UPSTREAM, "queue_timeout", &option_kind_duration, 0, "5s",
     "10ms to 1h", "how long one may wait",
     UPSTREAM(queue_timeout_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL},
    {OPTION_UPSTREAM, "resolve_interval", &option_kind_duration, OPTION_ZERO, "30s",
     "0, or 1s to 1d", "how often host names of servers are looked up again; 0: never",
     UPSTREAM(resolve_interval_ns), NS_PER_S, DAY_NS, NULL},
    {OPTION_UPSTREAM, "source_address", &option_socket_source, OPTION_EMPTY, "",
     "192.0.2.1, [2001:db8::1] or both with a comma between",
     "addresses of this host to connect from; empty: the kernel chooses",
     UPSTREAM(connect.sock), 0, 0, NULL},
    {OPTION_UPSTREAM, "keepalive", &option_socket_keepalive, 0, "off",
     "off, or a silence such as 60s, then if need be an interval and a count: 60s,10s,6",
     "silence after which a peer is asked whether it is still there, how often, and how many times",
     UPSTREAM(connect.sock.options.keepalive), 0, 0, NULL},
    {OPTION_UPSTREAM, "user_timeout", &option_kind_duration, OPTION_ZERO, "0",
     "0, or 1ms to 1d",
     "end a connection whose peer has not acknowledged what was sent for so long; 0: as the kernel does",
     UPSTREAM(connect.sock.options.user_timeout_ns), NS_PER_MS, DAY_NS, NULL},
    {OPTION_UPSTREAM, "nodelay", &option_kind_bool, 0, "yes",
     "yes or no", "send what there is at once, and do not wait to fill a segment",
     UPSTREAM(connect.sock.options.nodelay), 0, 0, NULL},
    {OPTION_UPSTREAM, "send_buffer", &option_kind_size, OPTION_ZERO, "0",
     "0, or 4k to 1g", "what the kernel takes to send before it is acknowledged; 0: it adapts that",
     UPSTREAM(connect.sock.options.send_buffer_bytes), 4096, 1 << 30, NULL},
    {OPTION_UPSTREAM, "receive_buffer", &option_kind_size, OPTION_ZERO, "0",
     "0, or 4k to 1g", "what the kernel takes before it is read; 0: it adapts that",
     UPSTREAM(connect.sock.options.receive_buffer_bytes), 4096, 1 << 30, NULL},
};
/* clang-format on */

const struct option *option_table(unsigned *n)
{
    *n = ARRAY_LEN(table);
    return table;
}

/* How many bytes all keys of a family begin with. */
static size_t family_len(const struct option *o)
{
    return strcspn(o->key, ".") + 1;
}

bool option_matches(const struct option *o, const char *key)
{
    if ((o->flags & OPTION_FAMILY) != 0)
        return strncmp(o->key, key, family_len(o)) == 0;
    return strcmp(o->key, key) == 0;
}

const char *option_member(const struct option *o, const char *key)
{
    MUST((o->flags & OPTION_FAMILY) != 0 && option_matches(o, key));
    return key + family_len(o);
}

const struct option *option_find(enum option_section section, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].section == section && option_matches(&table[i], key))
            return &table[i];
    }
    return NULL;
}

const char *option_section_name(enum option_section section)
{
    return sections[section].name;
}

const char *option_section_title(enum option_section section)
{
    return sections[section].title;
}

bool option_section_named(enum option_section section)
{
    return sections[section].named;
}

int option_set(const struct option *o, struct option_value *v)
{
    v->problem[0] = '\0';
    if (v->text[0] != '\0')
        return o->kind->set(o, v);
    if ((o->flags & OPTION_EMPTY) != 0)
        return 0; /* the field is NULL or false, as it began */
    return option_refuse(v, "the value is empty");
}

int option_refuse(struct option_value *v, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(v->problem, sizeof(v->problem), format, args);
    va_end(args);
    return -EINVAL;
}
