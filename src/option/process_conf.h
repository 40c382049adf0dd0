/*
 * option/process_conf: the settings of the process, and with those of the server, all there are.
 */
#ifndef OPTION_PROCESS_CONF_H
#define OPTION_PROCESS_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "net/sock.h"
#include "server/server_conf.h"

struct process_conf {
    const char *user;     /* NULL: not changed */
    const char *group;    /* NULL: the group of `user` */
    const char *pid_file; /* NULL: no file */
    const char *log;      /* stderr, syslog, journal or an absolute path */
    enum log_level log_level;
    unsigned access_log_buffer_bytes;
    bool allow_faults;
    int64_t drain_delay_ns;    /* 0: none */
    int64_t drain_timeout_ns;  /* 0: wait for ever */
    int64_t reload_confirm_ns; /* 0: a reload needs no confirmation */
    bool watch;                /* reload when the files have changed */
    int64_t upgrade_timeout_ns;
    int64_t upgrade_drain_timeout_ns; /* of a replaced process; 0: wait for ever */
    unsigned max_old_processes;
    bool upgrade_sessions;
    unsigned handoff_rate; /* sessions a second */
    const char *chroot;    /* NULL: no chroot */
    bool seccomp;
};

/* Admin interface: connections accepted above max_connections; descriptors besides connections. */
#define ADMIN_CONNECTIONS_EXTRA 64
#define ADMIN_DESCRIPTORS       16

/* Descriptors of an upgrade, besides one for each replaced process. */
#define UPGRADE_DESCRIPTORS 8

/* Longest token, without NUL. */
#define ADMIN_TOKEN_MAX_BYTES 512

struct admin_conf {
    struct address *addresses;
    unsigned n_addresses;   /* 0: no admin interface */
    struct sock_file file;  /* mode of unix sockets */
    const char *token_file; /* NULL: no token */
    const char *token;      /* content of the token file */
    bool allow_remote;
    int64_t request_timeout_ns;
    unsigned max_connections;
    bool is_max_configured;   /* max_connections is in the file; see config_admin_share() */
    int64_t history_ns;       /* 0: none */
    unsigned metrics_servers; /* maximum servers that have metrics of their own */
    bool write;               /* actions are allowed */
};

struct config {
    struct process_conf process;
    struct admin_conf admin;
    struct server_conf server;
    struct config_memory *memory; /* owns what the fields above point at, see config_free() */
};

#endif
