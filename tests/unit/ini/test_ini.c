/* ini/ini: what is a file that can be read, and what is not. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ini/ini.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

/*
 * What cannot be read: a directory, nothing, what may not be read (tests run as root, for whom
 * every file is readable; a link to itself is not), a FIFO without a writer and a device.
 */
static const struct {
    const char *path;
    int rc;
    const char *problem;
} refused[] = {
    {"/", -EISDIR, "is a directory (a file is needed)"},
    {"nosuch.ini", -ENOENT, "cannot be opened: No such file or directory"},
    {"loop.ini", -ELOOP, "cannot be opened: Too many levels of symbolic links"},
    {"fifo", -EINVAL, "is not a regular file"},
    {"/dev/zero", -EINVAL, "is not a regular file"},
};

GROUP(files, text_file_enter, config_file_leave);

TEST_EACH(files, unreadable_path_is_refused_at_once, ARRAY_LEN(refused))
{
    char problem[128];

    ck_assert_int_eq(symlink("loop.ini", "loop.ini"), 0);
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    ck_assert_int_eq(config_file_scan(refused[_i].path), refused[_i].rc);
    snprintf(problem, sizeof(problem), "%s:0: %s\n", refused[_i].path, refused[_i].problem);
    ck_assert_str_eq(config_file.problems, problem);
}

TEST(files, a_socket_is_refused)
{
    const struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
    config_file_scan("socket");
    ck_assert_int_eq(config_file.rc, -ENXIO);
    close(fd);
}

/* iniparser gets it in parts, which begin anywhere. */
TEST_EACH(files, long_file_is_read_completely, 4)
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
    config_file_scan("t.ini");
    ck_assert_int_eq(config_file.rc, 0);
    ck_assert_uint_eq(config_file.ini->n_sections, 5);
    for (unsigned s = 0; s < 5; s++) {
        section = &config_file.ini->sections[s];
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
    config_file_scan("t.ini");
    ck_assert_int_eq(config_file.rc, -EFBIG);
    ck_assert_str_eq(config_file.problems, "t.ini:0: is too large (at most 32 MiB)\n");
}
