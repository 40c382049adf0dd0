/* option/option_process: options of [reactord], [boss], [worker], [executor] and [handshake]. */
#include <stddef.h>

#include "base/clock.h"
#include "base/log.h"
#include "option/process_conf.h"
#include "option/option_cpus.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_rate.h"
#include "option/option_syslog.h"
#include "option/option_threads.h"
#include "engine/affinity.h"
#include "engine/budget.h"
#include "engine/chooser.h"
#include "server/server_conf.h"

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
    {"shuffled", CHOOSER_SHUFFLED},
    {NULL, 0},
};

static const struct option_word affinities[] = {
    {"off", SERVER_AFFINITY_OFF},
    {"auto", SERVER_AFFINITY_AUTO},
    {NULL, 0},
};

static const struct option_word io_ratios[] = {
    {"auto", BUDGET_RATIO_AUTO},
    {NULL, 0},
};

static const struct option_word worker_threads[] = {
    {"auto", 0},
    {NULL, 0},
};

static const struct option_word handshake_threads[] = {
    {"auto", TLS_HANDSHAKES_AUTO},
    {NULL, 0},
};

static const struct option_word rebalances[] = {
    {"off", REBALANCE_OFF}, {"auto", REBALANCE_AUTO}, {NULL, 0}};

static const struct option_word schedulings[] = {
    {"batch", AFFINITY_BATCH},
    {"inherit", AFFINITY_INHERIT},
    {NULL, 0},
};

/* option_kind_word stores an unsigned. */
_Static_assert(sizeof(enum log_level) == sizeof(unsigned), "enum log_level");
_Static_assert(sizeof(enum chooser_kind) == sizeof(unsigned), "enum chooser_kind");
_Static_assert(sizeof(enum affinity_scheduling) == sizeof(unsigned), "enum affinity_scheduling");

/* [reactord] fills both `process` and `server`. */
#define REACTORD(field)  offsetof(struct config, process.field)
#define SERVER(field)    offsetof(struct config, server.field)
#define BOSS(field)      offsetof(struct server_boss_conf, field)
#define WORKER(field)    offsetof(struct server_worker_conf, field)
#define EXECUTOR(field)  offsetof(struct server_executor_conf, field)
#define HANDSHAKE(field) offsetof(struct tls_handshakes_conf, field)

/* clang-format off */
static const struct option reactord_rows[] = {
    {"user", &option_kind_account, OPTION_EMPTY, OPTION_UPGRADE, "",
     "a user name or number", "user to run as; empty: the user that starts reactord",
     REACTORD(user), 0, 0, NULL, NULL},
    {"group", &option_kind_account, OPTION_EMPTY, OPTION_UPGRADE, "",
     "a group name or number", "group to run as; empty: the primary group of the user",
     REACTORD(group), 0, 0, NULL, NULL},
    {"pid_file", &option_kind_path, OPTION_EMPTY, OPTION_UPGRADE, "",
     "an absolute path such as /run/reactord.pid",
     "file for the process ID, locked while reactord runs; empty: none",
     REACTORD(pid_file), 0, 0, NULL, NULL},
    {"log", &option_syslog_log_target, 0, OPTION_UPGRADE, "stderr",
     "stderr, syslog, journal or an absolute path; behind syslog and its address: facility=, tag=, "
     "format=, host=, length=",
     "target of log lines",
     REACTORD(log), 0, 0, log_sinks, NULL},
    {"log_level", &option_kind_word, 0, OPTION_LIVE, "info",
     "error, warning, notice, info or debug", "lowest severity to log",
     REACTORD(log_level), 0, 0, log_levels, NULL},
    {"access_log_buffer", &option_kind_size, 0, OPTION_LIVE, "4m",
     "128k to 1g", "buffer of each access log, for lines waiting to be written",
     REACTORD(access_log_buffer_bytes), 128 << 10, 1 << 30, NULL, NULL},
    {"allow_faults", &option_kind_bool, 0, OPTION_LIVE, "no",
     "yes or no", "allow listeners to disturb connections on purpose (fault_*)",
     REACTORD(allow_faults), 0, 0, NULL, NULL},
    {"drain_delay", &option_kind_duration, 0, OPTION_LIVE, "0",
     "0 to 1h", "time to go on accepting when reactord stops, while /readyz says that it drains",
     REACTORD(drain_delay_ns), 0, 3600 * NS_PER_S, NULL, NULL},
    {"drain_timeout", &option_kind_duration, 0, OPTION_LIVE, "30s",
     "0 to 1d", "time for open connections to end when reactord stops; 0: no limit",
     REACTORD(drain_timeout_ns), 0, NS_PER_DAY, NULL, NULL},
    {"reload_confirm", &option_kind_duration, OPTION_ZERO, OPTION_LIVE, "0",
     "0, or 1s to 1h",
     "time to confirm a reload, by a second SIGHUP or reactorctl, before it is reverted; 0: no "
     "confirmation",
     REACTORD(reload_confirm_ns), NS_PER_S, 3600 * NS_PER_S, NULL, NULL},
    {"watch", &option_kind_bool, 0, OPTION_LIVE, "no",
     "yes or no", "reload when the files of the configuration have changed",
     REACTORD(watch), 0, 0, NULL, NULL},
    {"upgrade_timeout", &option_kind_duration, 0, OPTION_LIVE, "30s",
     "1s to 1h", "time for the new process of an upgrade to begin accepting connections",
     REACTORD(upgrade_timeout_ns), NS_PER_S, 3600 * NS_PER_S, NULL, NULL},
    {"upgrade_drain_timeout", &option_kind_duration, 0, OPTION_LIVE, "0",
     "0 to 30d", "time for open connections of a replaced process to end after an upgrade; 0: no limit",
     REACTORD(upgrade_drain_timeout_ns), 0, 30 * NS_PER_DAY, NULL, NULL},
    {"max_old_processes", &option_kind_number, 0, OPTION_LIVE, "4",
     "1 to 64",
     "maximum number of processes that drain after upgrades; at this number an upgrade is refused",
     REACTORD(max_old_processes), 1, 64, NULL, NULL},
    {"upgrade_sessions", &option_kind_bool, 0, OPTION_LIVE, "no",
     "yes or no", "after an upgrade, the new process takes the open connections of the old one",
     REACTORD(upgrade_sessions), 0, 0, NULL, NULL},
    {"handoff_rate", &option_kind_number, 0, OPTION_LIVE, "2000",
     "1 to 1000000", "connections a second that upgrade_sessions takes",
     REACTORD(handoff_rate), 1, 1000000, NULL, NULL},
    {"chroot", &option_kind_path, OPTION_EMPTY, OPTION_UPGRADE, "",
     "an absolute path such as /srv/reactord",
     "root directory to change to at start; all paths are below it; empty: none",
     REACTORD(chroot), 0, 0, NULL, NULL},
    {"seccomp", &option_kind_bool, 0, OPTION_UPGRADE, "no",
     "yes or no",
     "deny the system calls that a running reactord does not need; this disables upgrades",
     REACTORD(seccomp), 0, 0, NULL, NULL},
    {"max_connections", &option_kind_number, 0, OPTION_LIVE, "0",
     "0 to 10000000", "maximum number of open connections of all listeners together; 0: no limit",
     SERVER(quota.max_connections), 0, 10000000, NULL, NULL},
    {"connection_rate", &option_rate, 0, OPTION_NEW_CONNECTIONS, "0",
     "0, or a rate such as 100/s, 10/m or 5/h, optionally with a burst: 100/s burst=20",
     "rate limit of new connections of all listeners together; 0: no limit",
     SERVER(quota.rate), 0, 0, NULL, NULL},
    {"max_buffered", &option_kind_size_long, OPTION_ZERO, OPTION_UPGRADE, "0",
     "0, or 1m to 1024g",
     "limit of the memory for bytes that receivers have not taken yet; 0: no limit",
     SERVER(overload.max_buffered_bytes), 1 << 20, INT64_C(1) << 40, NULL, NULL},
    {"max_memory", &option_kind_size_long, OPTION_ZERO, OPTION_UPGRADE, "0",
     "0, or 4m to 1024g", "limit of the memory in use; 0: no limit",
     SERVER(overload.max_memory_bytes), 4 << 20, INT64_C(1) << 40, NULL, NULL},
    {"shed_rate", &option_rate, 0, OPTION_UPGRADE, "1000/s",
     "0, or a rate such as 100/s, 10/m or 5/h, optionally with a burst: 100/s burst=20",
     "rate limit of connections reset because of max_buffered and max_memory; 0: none",
     SERVER(overload.shedding), 0, 0, NULL, NULL},
};

/* `make test-accepting` defines 0. */
#ifndef BOSS_THREADS
#define BOSS_THREADS "1"
#endif

static const struct option boss_rows[] = {
    {"threads", &option_kind_number, 0, OPTION_LIVE, BOSS_THREADS,
     "0 to 64", "number of threads that accept connections; 0: the worker threads do",
     BOSS(threads), 0, SERVER_BOSS_MAX, NULL, NULL},
    {"accept_batch", &option_kind_number, 0, OPTION_LIVE, "64",
     "1 to 4096", "connections to accept from one socket before the next socket has its turn",
     BOSS(accept_batch), 1, 4096, NULL, NULL},
    {"cpu_affinity", &option_cpus_affinity, 0, OPTION_UPGRADE, "off",
     "off, auto, or processor numbers such as 0-3,8",
     "processors to pin the threads to, one each; off: not pinned; auto: all available",
     BOSS(cpus), 0, 0, affinities, NULL},
    {"scheduling", &option_kind_word, 0, OPTION_UPGRADE, "batch",
     "batch or inherit",
     "scheduling policy; batch: new clients do not interrupt other work on a busy processor; "
     "inherit: the policy at start",
     BOSS(scheduling), 0, 0, schedulings, NULL},
};

static const struct option worker_rows[] = {
    {"threads", &option_threads_workers, 0, OPTION_LIVE, "0",
     "0 to 256, auto, or auto N-M such as auto 1-16",
     "number of threads that serve connections; 0: two per processor; auto: as many as the load "
     "needs, N to M, else 1 to two per processor",
     WORKER(threads), 0, SERVER_WORKERS_MAX, worker_threads, NULL},
    {"io_ratio", &option_kind_percent_or_word, 0, OPTION_LIVE, "50",
     "auto, or 1 to 100",
     "share of a loop's time for I/O; the rest is for tasks; auto: by queue_wait_goal",
     WORKER(io_ratio), 1, 100, io_ratios, NULL},
    {"queue_wait_goal", &option_kind_duration, 0, OPTION_LIVE, "1ms",
     "10us to 1s", "with io_ratio = auto: longest wait of 99 % of the tasks",
     WORKER(queue_wait_goal_ns), 10 * NS_PER_US, NS_PER_S, NULL, NULL},
    {"task_quantum", &option_kind_duration, 0, OPTION_UPGRADE, "10ms",
     "100us to 1s", "maximum time for tasks of one kind in a turn of a loop",
     WORKER(task_quantum_ns), 100 * NS_PER_US, NS_PER_S, NULL, NULL},
    {"max_pending_tasks", &option_kind_number, 0, OPTION_UPGRADE, "1000000",
     "16 to 2147483647", "maximum number of tasks waiting for one loop; more are refused",
     WORKER(max_pending_tasks), 16, INT32_MAX, NULL, NULL},
    {"chooser", &option_kind_word, 0, OPTION_UPGRADE, "shuffled",
     "shuffled, round_robin, least_connections or p2c", "method to choose the loop of a new connection",
     WORKER(chooser), 0, 0, choosers, NULL},
    {"rebuild_threshold", &option_kind_number, OPTION_ZERO, OPTION_UPGRADE, "512",
     "0, or 3 to 1000000",
     "early returns from epoll in a row, with nothing to do, before a loop rebuilds its epoll "
     "instance; 0: never",
     WORKER(rebuild_threshold), 3, 1000000, NULL, NULL},
    {"stall_threshold", &option_kind_duration, OPTION_ZERO, OPTION_UPGRADE, "500ms",
     "0, or 10ms to 1h", "log a warning when a turn of a loop takes longer than this; 0: off",
     WORKER(stall_threshold_ns), 10 * NS_PER_MS, 3600 * NS_PER_S, NULL, NULL},
    {"cpu_affinity", &option_cpus_affinity, 0, OPTION_UPGRADE, "off",
     "off, auto, or processor numbers such as 0-3,8",
     "processors to pin the threads to, one each; off: not pinned; auto: all available",
     WORKER(cpus), 0, 0, affinities, NULL},
    {"rebalance", &option_kind_word, 0, OPTION_LIVE, "off",
     "off or auto", "move sessions from a loop that is busy to loops with less load",
     WORKER(rebalance.mode), 0, 0, rebalances, NULL},
    {"turn_goal", &option_kind_duration, OPTION_ZERO, OPTION_LIVE, "8ms",
     "0, or 100us to 10s",
     "with rebalance: a loop is busy, too, if one turn in 100 takes longer than this; 0: no goal",
     WORKER(rebalance.turn_goal_ns), 100 * NS_PER_US, 10 * NS_PER_S, NULL, NULL},
};

static const struct option executor_rows[] = {
    {"threads", &option_kind_number, 0, OPTION_UPGRADE, "4",
     "1 to 64", "number of threads for slow work, such as reading the configuration",
     EXECUTOR(threads), 1, 64, NULL, NULL},
    {"lookup_threads", &option_kind_number, 0, OPTION_UPGRADE, "32",
     "1 to 64", "number of threads for host name lookups, one each",
     EXECUTOR(lookup_threads), 1, 64, NULL, NULL},
    {"max_pending_tasks", &option_kind_number, 0, OPTION_UPGRADE, "16384",
     "16 to 2147483647", "maximum number of tasks waiting for a free thread; more are refused",
     EXECUTOR(max_pending_tasks), 16, INT32_MAX, NULL, NULL},
};

static const struct option handshake_rows[] = {
    {"threads", &option_kind_number_or_word, 0, OPTION_UPGRADE, "auto",
     "auto, or 0 to 256",
     "number of threads for TLS handshakes; auto: one per processor; 0: none, the worker loops "
     "run them",
     HANDSHAKE(threads), 0, TLS_HANDSHAKES_THREADS_MAX, handshake_threads, NULL},
    {"nice", &option_kind_number, 0, OPTION_UPGRADE, "0",
     "0 to 19", "nice value of these threads, added to that of the process",
     HANDSHAKE(nice), 0, 19, NULL, NULL},
    {"max_pending", &option_kind_number, 0, OPTION_UPGRADE, "2048",
     "1 to 1000000", "maximum number of clients waiting for the first step of their handshake",
     HANDSHAKE(max_pending), 1, 1000000, NULL, NULL},
};
/* clang-format on */

const struct option_rows option_process_reactord = {reactord_rows, ARRAY_LEN(reactord_rows)};
const struct option_rows option_process_boss = {boss_rows, ARRAY_LEN(boss_rows)};
const struct option_rows option_process_worker = {worker_rows, ARRAY_LEN(worker_rows)};
const struct option_rows option_process_executor = {executor_rows, ARRAY_LEN(executor_rows)};
const struct option_rows option_process_handshake = {handshake_rows, ARRAY_LEN(handshake_rows)};
