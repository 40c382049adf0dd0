/*
 * config/config: one generation of configuration, read from an INI file.
 *
 * Each layer declares the struct it wants; this module alone fills them. A configuration is
 * complete and checked when config_load() returns it, and immutable from then on.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/must.h"
#include "server/server.h"

struct process_conf {
    const char *user;     /* NULL: stay who we are */
    const char *group;    /* NULL: the user's */
    const char *pid_file; /* NULL: none */
    const char *log;      /* stderr, syslog, journal or an absolute path */
    enum log_level log_level;
    unsigned access_log_buffer_bytes;
    bool allow_faults;
    int64_t drain_timeout_ns; /* 0: wait for ever */
};

struct config {
    struct process_conf process;
    struct server_conf server;
    struct config_memory *memory; /* what config_free() frees: all that is pointed at above */
};

/*
 * config_load(out, path, errors):
 * Read and check the file at ${path}. Every problem of the file is written to ${errors}, one line
 * each, as `file:line: [section] key: what is wrong (what is allowed)`.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}, and frees it with config_free()
 * Errors: 0; -errno from opening or reading; -EINVAL (the file has errors; ${out} is NULL); -ENOMEM
 */
int config_load(struct config **out, const char *path, FILE *errors) NODISCARD;

/*
 * config_dump(config, out):
 * Write the configuration in effect, defaults included, as a file that config_load() reads back.
 *
 * Thread: before start
 * Errors: 0; -EIO (${out} took an error)
 */
int config_dump(const struct config *config, FILE *out) NODISCARD;

/*
 * config_free(config):
 * Free a generation that nothing uses any more; NULL is allowed.
 *
 * Thread: before start or after stop
 */
void config_free(struct config *config);

#endif
