/* config/ini: what is a file that can be read, and what is not. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/ini.h"
#include "support/config_file.h"
#include "support/text_file.h"
#include "support/suite.h"

static struct config_file file;

static void teardown(void)
{
    config_file_free(&file);
    text_file_leave();
}

GROUP(files, text_file_enter, teardown);

TEST(files, a_directory_is_refused)
{
    config_file_scan(&file, "/");
    ck_assert_int_eq(file.rc, -EISDIR);
    ck_assert_str_eq(file.problems, "/:0: is a directory (a file is needed)\n");
}

TEST(files, a_missing_file_is_refused)
{
    config_file_scan(&file, "nosuch.ini");
    ck_assert_int_eq(file.rc, -ENOENT);
    ck_assert_str_eq(file.problems, "nosuch.ini:0: cannot be opened: No such file or directory\n");
}

/* Tests run as root, for whom every file is readable; a link to itself is not. */
TEST(files, an_unreadable_file_is_refused)
{
    ck_assert_int_eq(symlink("loop.ini", "loop.ini"), 0);
    config_file_scan(&file, "loop.ini");
    ck_assert_int_eq(file.rc, -ELOOP);
    ck_assert_str_eq(file.problems,
                     "loop.ini:0: cannot be opened: Too many levels of symbolic links\n");
}

TEST(files, a_fifo_without_a_writer_is_refused_at_once)
{
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    config_file_scan(&file, "fifo");
    ck_assert_int_eq(file.rc, -EINVAL);
    ck_assert_str_eq(file.problems, "fifo:0: is not a regular file\n");
}

TEST(files, a_device_is_refused)
{
    config_file_scan(&file, "/dev/zero");
    ck_assert_int_eq(file.rc, -EINVAL);
    ck_assert_str_eq(file.problems, "/dev/zero:0: is not a regular file\n");
}

TEST(files, a_socket_is_refused)
{
    const struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
    config_file_scan(&file, "socket");
    ck_assert_int_eq(file.rc, -ENXIO);
    close(fd);
}

/* iniparser gets it in parts, which begin anywhere. */
TEST_EACH(files, a_long_file_has_all_its_values, 4)
{
    unsigned n = 1 + 977 * (unsigned)_i;
    static char text[1 << 20];
    size_t len = 0;
    const struct ini_section *section;

    for (unsigned s = 0; s < 5; s++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "[s%u]\n# a comment\n", s);
        for (unsigned i = 0; i < n * s; i++)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "k%u = v%u of %u\n\n", i, i, s);
    }
    text_file_write("t.ini", text, len);
    config_file_scan(&file, "t.ini");
    ck_assert_int_eq(file.rc, 0);
    ck_assert_uint_eq(file.ini->n_sections, 5);
    for (unsigned s = 0; s < 5; s++) {
        section = &file.ini->sections[s];
        ck_assert_uint_eq(section->n_entries, n * s);
        for (unsigned i = 0; i < section->n_entries; i++) {
            char value[32];

            snprintf(value, sizeof(value), "v%u of %u", i, s);
            ck_assert_str_eq(section->entries[i].value, value);
        }
    }
}

TEST(files, a_file_has_at_most_32_mib)
{
    text_file_write("t.ini", "", 0);
    ck_assert_int_eq(truncate("t.ini", INI_FILE_BYTES + 1), 0);
    config_file_scan(&file, "t.ini");
    ck_assert_int_eq(file.rc, -EFBIG);
    ck_assert_str_eq(file.problems, "t.ini:0: is too large (at most 32 MiB)\n");
}
