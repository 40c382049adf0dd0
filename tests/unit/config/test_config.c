/* config/config: a file becomes the structs of the layers, and can be written again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "config/config.h"
#include "option/option.h"
#include "ini/ini.h"
#include "support/config_file.h"
#include "support/fault.h"
#include "support/suite.h"
#include "support/text_file.h"
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
    ck_assert_uint_ne(l->socket.rows, 0); /* see sock_options_index() */
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
    ck_assert_uint_eq(config_file.config->server.worker.threads.n, 0);
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
    ck_assert_uint_eq(config_file.config->server.worker.threads.n, 4);
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
    ck_assert_uint_ne(u->connect.sock.options.rows, 0);
    ck_assert_int_eq(u->connect.attempt_delay_ns, 250 * NS_PER_MS);
    ck_assert_ptr_null(u->connect.sock.sources);
    ck_assert_uint_eq(config_file.config->server.upstreams[1].retries, 3);
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
