/*
 * config/config: the configuration, read from an INI file.
 *
 * Each layer declares the struct of its settings; only this layer fills these structs. The result
 * of config_load() is complete, valid and immutable.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdint.h>
#include <stdio.h>

#include "base/must.h"
#include "option/process_conf.h"

/*
 * config_load(out, path, errors):
 * Read and check ${path}. Write each problem to ${errors} as `file:line: [section] key: problem
 * (allowed)`.
 *
 * Thread: as config_reload()
 * Errors: 0; -errno from opening or reading; -EINVAL (invalid); -ENOMEM; -EIO (writing to
 *         ${errors})
 */
int config_load(struct config **out, const char *path, FILE *errors) NODISCARD;

/*
 * config_reload(out, path, running, errors):
 * As config_load(). Also refuse a value that differs from ${running}, if only an upgrade can change
 * it (option.applies).
 *
 * Thread: any but loops, one at a time
 * Owns:   the caller calls config_free(); ${running} is only read
 * Errors: as config_load()
 */
int config_reload(struct config **out, const char *path, const struct config *running,
                  FILE *errors) NODISCARD;

/*
 * config_dump(config, out):
 * Write the effective configuration, with defaults, as a file for config_load().
 *
 * Errors: 0; -EIO
 */
int config_dump(const struct config *config, FILE *out) NODISCARD;

/*
 * config_dump_origins(config, out):
 * As config_dump(), with a comment at each value: its file and line, and its [defaults KIND], if it
 * is from there; or `default`.
 */
int config_dump_origins(const struct config *config, FILE *out) NODISCARD;

/* config_digest(config): return the digest of its files, see ini/ini_include.h. */
uint64_t config_digest(const struct config *config);

/*
 * config_free(config):
 * Release a reference to ${config}, or NULL; the last one frees it. A section lives on while its
 * memory is held (listener_conf.memory and others).
 *
 * Thread: any, when no thread uses ${config}
 */
void config_free(struct config *config);

#endif
