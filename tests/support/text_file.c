/* support/text_file: see text_file.h. */
#include "support/text_file.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];

void text_file_enter(void)
{
    strcpy(directory, "/tmp/reactord-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
}

void text_file_leave(void)
{
    DIR *d = opendir(directory);
    struct dirent *entry;

    ck_assert_ptr_nonnull(d);
    while ((entry = readdir(d)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ck_assert_int_eq(remove(entry->d_name), 0);
    }
    closedir(d);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}

void text_file_write(const char *name, const void *bytes, size_t len)
{
    FILE *f = fopen(name, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

void text_file_write_text(const char *name, const char *text)
{
    text_file_write(name, text, strlen(text));
}
