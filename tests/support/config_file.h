/*
 * support/config_file: a configuration file of a test, and what the daemon has to say about it.
 */
#ifndef SUPPORT_CONFIG_FILE_H
#define SUPPORT_CONFIG_FILE_H

#include <stddef.h>

struct config;
struct ini;

/* What loading a file gave; zero-initialised before and after. */
struct config_file {
    int rc;
    struct config *config; /* of config_file_load() */
    struct ini *ini;       /* of config_file_scan() */
    char *problems;        /* the lines that were told, "" if none */
};

/*
 * config_file_load(f, path) / config_file_scan(f, path):
 * Load the file at ${path} with config_load(), or no further than with ini_load().
 *
 * Thread: the test's
 * Owns:   the caller frees what ${f} holds with config_file_free()
 * Errors: none (f->rc has those of the function)
 */
void config_file_load(struct config_file *f, const char *path);
void config_file_scan(struct config_file *f, const char *path);

/*
 * config_file_free(f):
 * Free what ${f} holds, so that it can be used again.
 *
 * Thread: the test's
 */
void config_file_free(struct config_file *f);

#endif
