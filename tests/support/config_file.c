/* support/config_file: see config_file.h. */
#include "support/config_file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "config/diagnostics.h"
#include "config/ini.h"

void config_file_load(struct config_file *f, const char *path)
{
    size_t size;
    FILE *out = open_memstream(&f->problems, &size);

    ck_assert_ptr_nonnull(out);
    f->rc = config_load(&f->config, path, out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert((f->rc == 0) == (f->config != NULL));
    ck_assert((f->rc < 0 || strstr(f->problems, ": warning: ")) == (f->problems[0] != '\0'));
}

void config_file_scan(struct config_file *f, const char *path)
{
    struct diagnostics *diagnostics;
    size_t size;
    FILE *out = open_memstream(&f->problems, &size);

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(diagnostics_create(&diagnostics, path), 0);
    f->rc = ini_load(&f->ini, path, diagnostics);
    ck_assert_int_eq(diagnostics_write(diagnostics, out), 0);
    diagnostics_destroy(diagnostics);
    ck_assert_int_eq(fclose(out), 0);
}

void config_file_free(struct config_file *f)
{
    config_free(f->config);
    ini_free(f->ini);
    free(f->problems);
    *f = (struct config_file){0};
}
