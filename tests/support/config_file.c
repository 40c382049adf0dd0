/* support/config_file: see config_file.h. */
#include "support/config_file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "ini/diagnostics.h"
#include "ini/ini.h"
#include "support/text_file.h"

struct config_file config_file;

int config_file_load(const char *path)
{
    size_t size;
    FILE *out;

    config_file_free();
    out = open_memstream(&config_file.problems, &size);
    ck_assert_ptr_nonnull(out);
    config_file.rc = config_load(&config_file.config, path, out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert((config_file.rc == 0) == (config_file.config != NULL));
    ck_assert((config_file.rc < 0 || strstr(config_file.problems, ": warning: ")) ==
              (config_file.problems[0] != '\0'));
    return config_file.rc;
}

int config_file_scan(const char *path)
{
    struct diagnostics *diagnostics;
    size_t size;
    FILE *out;

    config_file_free();
    out = open_memstream(&config_file.problems, &size);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(diagnostics_create(&diagnostics, path), 0);
    config_file.rc = ini_load(&config_file.ini, path, diagnostics);
    ck_assert_int_eq(diagnostics_write(diagnostics, out), 0);
    diagnostics_destroy(diagnostics);
    ck_assert_int_eq(fclose(out), 0);
    return config_file.rc;
}

int config_file_load_text(const char *text)
{
    text_file_write_text("t.ini", text);
    return config_file_load("t.ini");
}

int config_file_scan_text(const char *text)
{
    return config_file_scan_bytes(text, strlen(text));
}

int config_file_scan_bytes(const char *bytes, size_t len)
{
    text_file_write("t.ini", bytes, len);
    return config_file_scan("t.ini");
}

void config_file_free(void)
{
    config_free(config_file.config);
    ini_free(config_file.ini);
    free(config_file.problems);
    config_file = (struct config_file){0};
}

void config_file_leave(void)
{
    config_file_free();
    text_file_leave();
}
