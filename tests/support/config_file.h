/*
 * support/config_file: a configuration file of a test, and what the daemon has to say about it.
 */
#ifndef SUPPORT_CONFIG_FILE_H
#define SUPPORT_CONFIG_FILE_H

#include <stddef.h>

struct config;
struct ini;

/* What the last file gave. */
struct config_file {
    int rc;
    struct config *config; /* of config_file_load() */
    struct ini *ini;       /* of config_file_scan() */
    char *problems;        /* the lines that were told, "" if none */
};

extern struct config_file config_file;

/*
 * config_file_load(path) / config_file_scan(path):
 * Load the file at ${path} with config_load(), or no further than with ini_load(), in place of the
 * last one. Returns config_file.rc.
 *
 * Thread: the test's
 * Errors: those of the function
 */
int config_file_load(const char *path);
int config_file_scan(const char *path);

/*
 * config_file_load_text(text) / config_file_scan_text(text) / config_file_scan_bytes(bytes, len):
 * The same for a file "t.ini" that is written first.
 *
 * Thread: the test's, between text_file_enter() and config_file_leave()
 * Errors: those of the function
 */
int config_file_load_text(const char *text);
int config_file_scan_text(const char *text);
int config_file_scan_bytes(const char *bytes, size_t len);

/*
 * config_file_free() / config_file_leave():
 * Free what the last file gave; with text_file_leave(), as the end of a checked fixture that begins
 * with text_file_enter().
 *
 * Thread: the test's
 */
void config_file_free(void);
void config_file_leave(void);

#endif
