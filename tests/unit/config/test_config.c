/* config/config: a file becomes the structs of the layers, and can be written again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "config/config.h"
#include "config/ini.h"
#include "config/option.h"
#include "support/config_file.h"
#include "support/fault.h"
#include "support/text_file.h"
#include "support/suite.h"
#include "upstream/upstream.h"

#define ECHO   "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
#define PROXY  "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n"
#define SERVER "[upstream u]\nserver.a = 127.0.0.1:9\n"

GROUP(files, text_file_enter, config_file_leave);

TEST(files, file_with_one_listener_is_valid)
{
    const struct listener_conf *l;

    ck_assert_int_eq(config_file_load_text(ECHO), 0);
    ck_assert_uint_eq(config_file.config->server.n_listeners, 1);
    ck_assert_uint_eq(config_file.config->server.n_upstreams, 0);
    l = &config_file.config->server.listeners[0];
    ck_assert_str_eq(l->name, "e");
    ck_assert_uint_eq(l->n_addresses, 1);
    ck_assert_int_eq(l->service, LISTENER_ECHO);
    ck_assert_ptr_null(l->upstream);
    ck_assert_uint_eq(l->pipeline.n, 0);
    ck_assert_uint_eq(l->backlog, 4096);
    ck_assert_uint_eq(l->reuseport, 1);
    ck_assert_int_eq(l->session.splice, SPLICE_AUTO);
    ck_assert_int_eq(l->session.idle_timeout_ns, 3600 * NS_PER_S);
    ck_assert_uint_eq(l->socket.keepalive.idle_s, 0);
    ck_assert(l->socket.nodelay);
    ck_assert_int_eq(l->session.client_idle_timeout_ns, 0);
    ck_assert_int_eq(l->session.half_close_timeout_ns, 300 * NS_PER_S);
    ck_assert_int_eq(l->session.first_byte_timeout_ns, 0);
    ck_assert_int_eq(l->session.max_lifetime_ns, 0);
    ck_assert_uint_eq(l->session.lifetime_jitter, 10);
}

TEST(files, options_not_in_the_file_have_their_defaults)
{
    ck_assert_int_eq(config_file_load_text(ECHO), 0);
    ck_assert_ptr_null(config_file.config->process.user);
    ck_assert_ptr_null(config_file.config->process.group);
    ck_assert_ptr_null(config_file.config->process.pid_file);
    ck_assert_str_eq(config_file.config->process.log, "stderr");
    ck_assert_int_eq(config_file.config->process.log_level, LOG_LEVEL_INFO);
    ck_assert_int_eq(config_file.config->process.drain_timeout_ns, 30 * NS_PER_S);
    ck_assert_uint_eq(config_file.config->server.boss.threads, 1);
    ck_assert_uint_eq(config_file.config->server.boss.accept_batch, 64);
    ck_assert_int_eq(config_file.config->server.boss.scheduling, AFFINITY_BATCH);
    ck_assert_uint_eq(config_file.config->server.worker.threads, 0);
    ck_assert_uint_eq(config_file.config->server.worker.io_ratio, 50);
    ck_assert_int_eq(config_file.config->server.worker.task_quantum_ns, 10 * NS_PER_MS);
    ck_assert_uint_eq(config_file.config->server.worker.max_pending_tasks, 1000000);
    ck_assert_int_eq(config_file.config->server.worker.chooser, CHOOSER_SHUFFLED);
    ck_assert_uint_eq(config_file.config->server.worker.rebuild_threshold, 512);
    ck_assert_int_eq(config_file.config->server.worker.stall_threshold_ns, 500 * NS_PER_MS);
    ck_assert_int_eq(config_file.config->server.worker.cpus.affinity, SERVER_AFFINITY_OFF);
    ck_assert_int_eq(config_file.config->server.boss.cpus.affinity, SERVER_AFFINITY_OFF);
    ck_assert_uint_eq(config_file.config->server.executor.threads, 4);
    ck_assert_uint_eq(config_file.config->server.executor.max_pending_tasks, 16384);
}

TEST(files, options_of_the_file_are_set)
{
    ck_assert_int_eq(
        config_file_load_text(
            "[reactord]\nuser = nobody\ngroup = 65534\npid_file = /run/r.pid\n"
            "log = syslog\nlog_level = debug\ndrain_timeout = 0\n"
            "[boss]\nthreads = 2\naccept_batch = 1\ncpu_affinity = auto\nscheduling = inherit\n"
            "[worker]\nthreads = 4\nio_ratio = 100%\ntask_quantum = 1s\n"
            "max_pending_tasks = 16\nchooser = least_connections\n"
            "rebuild_threshold = 0\nstall_threshold = 1h\ncpu_affinity = 8, 0-3\n"
            "[executor]\nthreads = 64\nmax_pending_tasks = 2147483647\n"
            "[listen e]\naddress = *:7\nservice = echo\npipeline = log\n"
            "backlog = 1\nreuseport = 2\nsplice = on\nidle_timeout = 0\n"
            "client_idle_timeout = 1s\n"
            "half_close_timeout = 365d\nfirst_byte_timeout = 3s\n"
            "max_lifetime = 1d\nlifetime_jitter = 90%\n"),
        0);
    ck_assert_str_eq(config_file.config->process.user, "nobody");
    ck_assert_str_eq(config_file.config->process.group, "65534");
    ck_assert_str_eq(config_file.config->process.pid_file, "/run/r.pid");
    ck_assert_str_eq(config_file.config->process.log, "syslog");
    ck_assert_int_eq(config_file.config->process.log_level, LOG_LEVEL_DEBUG);
    ck_assert_int_eq(config_file.config->process.drain_timeout_ns, 0);
    ck_assert_uint_eq(config_file.config->server.boss.threads, 2);
    ck_assert_uint_eq(config_file.config->server.boss.accept_batch, 1);
    ck_assert_int_eq(config_file.config->server.boss.scheduling, AFFINITY_INHERIT);
    ck_assert_uint_eq(config_file.config->server.worker.threads, 4);
    ck_assert_uint_eq(config_file.config->server.worker.io_ratio, 100);
    ck_assert_int_eq(config_file.config->server.worker.task_quantum_ns, NS_PER_S);
    ck_assert_uint_eq(config_file.config->server.worker.max_pending_tasks, 16);
    ck_assert_int_eq(config_file.config->server.worker.chooser, CHOOSER_LEAST_CONNECTIONS);
    ck_assert_uint_eq(config_file.config->server.worker.rebuild_threshold, 0);
    ck_assert_int_eq(config_file.config->server.worker.stall_threshold_ns, 3600 * NS_PER_S);
    ck_assert_int_eq(config_file.config->server.worker.cpus.affinity, SERVER_AFFINITY_LIST);
    ck_assert_uint_eq(config_file.config->server.worker.cpus.n, 5);
    ck_assert_uint_eq(config_file.config->server.worker.cpus.list[0], 8);
    ck_assert_int_eq(config_file.config->server.boss.cpus.affinity, SERVER_AFFINITY_AUTO);
    ck_assert_uint_eq(config_file.config->server.executor.threads, 64);
    ck_assert_uint_eq(config_file.config->server.executor.max_pending_tasks, INT32_MAX);
    ck_assert_uint_eq(config_file.config->server.listeners[0].n_addresses, 2);
    ck_assert_uint_eq(config_file.config->server.listeners[0].pipeline.n, 1);
    ck_assert_uint_eq(config_file.config->server.listeners[0].reuseport, 2);
    ck_assert_int_eq(config_file.config->server.listeners[0].session.splice, SPLICE_ON);
    ck_assert_int_eq(config_file.config->server.listeners[0].session.idle_timeout_ns, 0);
    ck_assert_int_eq(config_file.config->server.listeners[0].session.client_idle_timeout_ns,
                     NS_PER_S);
    ck_assert_int_eq(config_file.config->server.listeners[0].session.first_byte_timeout_ns,
                     3 * NS_PER_S);
    ck_assert_int_eq(config_file.config->server.listeners[0].session.max_lifetime_ns,
                     86400 * NS_PER_S);
    ck_assert_uint_eq(config_file.config->server.listeners[0].session.lifetime_jitter, 90);
}

TEST(files, proxy_has_its_upstream_and_the_upstream_its_servers)
{
    const struct upstream_conf *u;

    ck_assert_int_eq(
        config_file_load_text("[Listen Front]\nADDRESS = 127.0.0.1:7, [::1]:7, /run/f.sock\n"
                              "service = proxy\nupstream = BACK\n"
                              "[upstream Back]\nserver.A = 127.0.0.1:8\n"
                              "server.b = @b weight=2 backup\nconnect_timeout = 10ms\nretries = 0\n"
                              "balance = round_robin\n"
                              "[upstream unused]\nserver.a = [::1]:9\n"),
        0);
    ck_assert_uint_eq(config_file.config->server.listeners[0].n_addresses, 3);
    ck_assert_str_eq(config_file.config->server.listeners[0].name, "front");
    ck_assert_str_eq(config_file.config->server.listeners[0].upstream, "back");
    ck_assert_uint_eq(config_file.config->server.n_upstreams, 2);
    u = &config_file.config->server.upstreams[0];
    ck_assert_str_eq(u->name, "back");
    ck_assert_uint_eq(u->n_servers, 2);
    ck_assert_str_eq(u->servers[0].id, "a");
    ck_assert_uint_eq(u->servers[0].weight, 1);
    ck_assert_str_eq(u->servers[1].address_text, "@b");
    ck_assert_uint_eq(u->servers[1].weight, 2);
    ck_assert(u->servers[1].backup);
    ck_assert_int_eq(u->connect_timeout_ns, 10 * NS_PER_MS);
    ck_assert_uint_eq(u->retries, 0);
    ck_assert(u->connect.sock.options.nodelay);
    ck_assert_int_eq(u->connect.attempt_delay_ns, 250 * NS_PER_MS);
    ck_assert_uint_eq(u->connect.sock.source_ipv4.len, 0);
    ck_assert_uint_eq(config_file.config->server.upstreams[1].retries, 3);
}

/* What config_dump() writes, as a text the caller frees. */
static char *dump(void)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(config_dump(config_file.config, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

/* The next line of ${text} is ${line}; what follows it. */
static const char *expect_line(const char *text, const char *line)
{
    size_t len = strcspn(text, "\n");

    ck_assert_msg(len == strlen(line) && memcmp(text, line, len) == 0, "%.*s, not %s", (int)len,
                  text, line);
    return text[len] != '\0' ? text + len + 1 : text + len;
}

/* What each option is that is not as it is when nothing is set. */
struct set {
    enum option_section section;
    const char *key;
    const char *lines[2];
};

static const struct set *find_set(const struct set *sets, enum option_section section,
                                  const char *key)
{
    for (; sets->key != NULL; sets++)
        if (sets->section == section && strcmp(sets->key, key) == 0)
            return sets;
    return NULL;
}

/* Defaults of options that have no effect: without handlers, checks, faults and so on. */
static bool without_effect(enum option_section section, const char *key)
{
    static const char *const keys[] = {"executor_delay",
                                       "unix_mode",
                                       "unix_user",
                                       "unix_group",
                                       "trusted_proxies",
                                       "fault_drop_as",
                                       "fault_percent",
                                       "fault_clients",
                                       "fault_seed",
                                       "idle_read",
                                       "idle_write",
                                       "idle_all",
                                       "idle_action",
                                       "hash_balance_factor",
                                       "check_tls",
                                       "check_tls_name",
                                       "check_http",
                                       "check_http_host",
                                       "check_http_status",
                                       "check_user",
                                       "check_send",
                                       "check_expect",
                                       "check_send_proxy",
                                       "agent_interval",
                                       "agent_send",
                                       "check_interval",
                                       "check_fast_interval",
                                       "check_jitter",
                                       "check_timeout",
                                       "rise",
                                       "fall",
                                       "initial_state",
                                       "on_down",
                                       "on_up",
                                       "on_down_rate",
                                       "spare_max_age",
                                       "send_proxy_tlvs",
                                       "access_log_format",
                                       "access_log_interval",
                                       "proxy_header_timeout",
                                       "client_hello_timeout",
                                       "tls_start",
                                       "handshake_timeout",
                                       "tls_name"};
    bool is_listen = section == OPTION_LISTEN;

    if (section == OPTION_ADMIN) /* none, as there is no address */
        return strcmp(key, "address") != 0;
    if (is_listen && strcmp(key, "upstream") == 0) /* of an echo service */
        return true;
    for (size_t i = 0; i < ARRAY_LEN(keys) && section >= OPTION_LISTEN; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return is_listen && strncmp(key, "frame_", 6) == 0;
}

static const char *expect_option(const char *text, const struct option *o, const struct set *set,
                                 enum option_section section)
{
    char line[256];

    if (set == NULL) {
        if ((o->flags & OPTION_FAMILY) != 0)
            return text;
        snprintf(line, sizeof(line), "%s%s =%s%s", without_effect(section, o->key) ? "#" : "",
                 o->key, *o->fallback != '\0' ? " " : "", o->fallback);
        return expect_line(text, line);
    }
    for (unsigned i = 0; i < 2 && set->lines[i] != NULL; i++)
        text = expect_line(text, set->lines[i]);
    return text;
}

TEST(files, a_dump_has_every_option_in_the_order_of_the_table)
{
    static const struct set sets[] = {
        {OPTION_LISTEN, "address", {"address = 127.0.0.1:7"}},
        {OPTION_LISTEN, "service", {"service = echo"}},
        {OPTION_LISTEN, "frame_length_end", {"#frame_length_end = \"\\x20\""}},
        {OPTION_LISTEN, "frame_delimiter", {"#frame_delimiter = \"\\n\""}},
        {OPTION_WORKER, "io_ratio", {"io_ratio = 70%"}},
        {OPTION_UPSTREAM, "server.ID", {"server.b = @b", "server.a = @a"}},
        {.key = NULL},
    };
    /* Those that are not in the file come first. */
    static const struct {
        enum option_section section;
        const char *title;
    } sections[] = {{OPTION_REACTORD, "[reactord]"}, {OPTION_BOSS, "[boss]"},
                    {OPTION_EXECUTOR, "[executor]"}, {OPTION_HANDSHAKE, "[handshake]"},
                    {OPTION_ADMIN, "[admin]"},       {OPTION_LISTEN, "[listen e]"},
                    {OPTION_WORKER, "[worker]"},     {OPTION_UPSTREAM, "[upstream u]"}};
    const char *at;
    char *text;

    ck_assert_int_eq(config_file_load_text(
                         "[Listen E]\nservice = echo # c\naddress=127.0.0.1:7\n"
                         "[worker]\nio_ratio = 70%\n[upstream u]\nserver.b=@b\nSERVER.A=\"@a\"\n"),
                     0);
    at = text = dump();
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        const struct option *o;

        at = i > 0 ? expect_line(at, "") : at;
        at = expect_line(at, sections[i].title);
        for (unsigned row = 0; (o = option_row(sections[i].section, row)) != NULL; row++)
            at = expect_option(at, o, find_set(sets, sections[i].section, o->key),
                               sections[i].section);
    }
    ck_assert_str_eq(at, "");
    free(text);
}

/* Load ${text}, then what its dump says; the second dump must be the first. */
static void dump_and_load(const char *text)
{
    char *first, *second;

    ck_assert_msg(config_file_load_text(text) == 0, "%s", config_file.problems);
    first = dump();
    ck_assert_msg(config_file_load_text(first) == 0, "%s%s", config_file.problems, first);
    second = dump();
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
}

static const char *const dumped[] = {
    "[defaults listen]\nservice = proxy\nupstream = u\nframe_max_length = 5k\nidle_timeout = 5s\n"
    "[defaults upstream]\ncheck = steps\ncheck_step.1 = send x\n"
    "[listen a]\naddress = @a\n[listen b]\naddress = @b\nservice = echo\n"
    "[upstream u]\nserver.a = 127.0.0.1:9\n",
    ECHO,
    PROXY ECHO SERVER "server.b = /run/b weight=3 backup\n[boss]\nthreads = 3\n",
    "[listen e]\nservice = echo\naddress = *:7, @x, [fe80::1%lo]:8, [::ffff:127.0.0.1]:9\n",
    "[listen e]\nservice = echo\naddress = \"/run/a#b\"\n",
    ECHO "[worker]\nstall_threshold = 0\ncpu_affinity = \" 0-3 , 8\"\n[executor]\nthreads = 1\n",
    "[listen e]\nservice = echo\naddress = '/run/a\"b'\n",
    "[listen e]\nservice = echo\naddress = \"/run/it's\"\n",
    "[listen e]\nservice = echo\naddress = \"/run/x\\\"\n",
    "[listen e]\nservice = echo\naddress = '/run/x\\y#\\\\'\n",
    "[listen e]\nservice = echo\naddress = \" 127.0.0.1:7 \"\n",
    "[listen e]\nservice = echo\naddress = /run/gr\xc3\xbc\xc3\x9f e\n",
    ECHO "pipeline = frame\nframe_by = delimiter\nframe_delimiter = \\\\, \\r\\n, \\x2c\n",
    ECHO "pipeline = frame, executor\nframe_by = text_length\nframe_fail_fast = yes\n",
    ECHO "pipeline = idle\nidle_read = 5s\naccess_log = stderr\n[reactord]\nallow_faults = yes\n",
    PROXY SERVER "check = tcp\nfall = 3\neject_failures = 0\nspare = 3\nbalance = maglev\n",
    PROXY SERVER "send_proxy = v2\nsend_proxy_tlvs = crc32c\n",
    ECHO "upstream = \"\"\n[reactord]\nuser = # nobody\n",
    ECHO "[admin]\naddress = @admin, /run/admin\nmode = 660\nwrite = no\n",
};

TEST_EACH(files, dump_is_read_back_as_the_same_configuration, ARRAY_LEN(dumped))
{
    dump_and_load(dumped[_i]);
}

/* Addresses of ${len} bytes, at least 910. */
static void write_addresses(char *out, size_t len)
{
    for (int i = 0, used = 0; i < 9; i++, used += 100)
        sprintf(out + used, "@%d%097d,", i, 0);
    sprintf(out + 900, "@9%0*d", (int)len - 902, 0);
    ck_assert_uint_eq(strlen(out), len);
}

TEST(files, value_of_maximum_length_is_read_back_as_the_same)
{
    char text[2048] = "[listen e]\nservice=echo\naddress=";

    write_addresses(text + strlen(text), INI_LINE_BYTES - strlen("address="));
    dump_and_load(text);
}

TEST(files, a_value_with_variables_fits_in_a_line_of_the_dump)
{
    const size_t most = INI_LINE_BYTES - strlen("address=''");
    char list[2048];

    write_addresses(list, most);
    setenv("LIST", list, 1);
    dump_and_load("[listen e]\nservice = echo\naddress = ${LIST}\n");
    ck_assert_int_eq(config_file_load_text("[listen e]\nservice = echo\naddress = ${LIST}x\n"),
                     -EINVAL);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:3: [listen e] address: the value is too long with its environment "
                     "variables (at most 990 characters)\n");
    unsetenv("LIST");
}

TEST(files, dump_that_cannot_be_written_fails)
{
    FILE *full = fopen("/dev/full", "w");

    ck_assert_ptr_nonnull(full);
    ck_assert_int_eq(config_file_load_text(ECHO), 0);
    ck_assert_int_eq(config_dump(config_file.config, full), -EIO);
    fclose(full);
}

TEST(files, a_section_outlives_its_configuration_while_its_memory_is_held)
{
    struct listener_conf l;
    struct upstream_conf u;

    ck_assert_int_eq(config_file_load_text(PROXY "allow = 10.0.0.0/8\n" SERVER), 0);
    l = config_file.config->server.listeners[0];
    u = config_file.config->server.upstreams[0];
    arena_hold(l.memory);
    arena_hold(u.memory);
    config_free(config_file.config);
    config_file.config = NULL;

    ck_assert_str_eq(l.name, "p");
    ck_assert_str_eq(l.upstream, "u");
    ck_assert_uint_eq(l.addresses[0].u.sa.sa_family, AF_INET);
    ck_assert_uint_eq(l.access.n, 1);
    ck_assert(l.access.allow[0]);
    ck_assert_uint_eq(l.access.blocks[0].bits, 8);
    ck_assert_str_eq(u.name, "u");
    ck_assert_str_eq(u.servers[0].id, "a");
    ck_assert_uint_eq(u.servers[0].n_addresses, 1);
    arena_release(l.memory);
    arena_release(u.memory);
}

static int load(void *errors)
{
    struct config *config;
    int rc = config_load(&config, "t.ini", errors);

    config_free(config);
    return rc;
}

TEST(files, failed_allocation_loads_nothing)
{
    FILE *errors = fopen("/dev/null", "w");

    ck_assert_ptr_nonnull(errors);
    text_file_write_text("t.ini", PROXY "allow = 10.0.0.0/8\n" SERVER);
    ck_assert_uint_gt(fault_each_allocation(load, errors), 50);
    fclose(errors);
}
