/* config/config_admin: what is wrong with [admin], and which token it has. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "config/config.h"
#include "net/address.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

#define ECHO  "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
#define TOKEN "0123456789abcdef"

static char token_path[256];

static void write_token(const char *bytes, size_t n, mode_t mode)
{
    FILE *f = fopen("token", "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod("token", mode), 0);
}

static void enter(void)
{
    char dir[200];

    text_file_enter();
    ck_assert_ptr_nonnull(getcwd(dir, sizeof(dir)));
    snprintf(token_path, sizeof(token_path), "%s/token", dir);
    write_token(TOKEN "\n", strlen(TOKEN) + 1, 0600);
}

/* Load an [admin] with these lines; `TOKEN_FILE` in them is the option. */
static int load(const char *lines)
{
    const char *mark = strstr(lines, "TOKEN_FILE");
    char text[2048];

    if (mark)
        snprintf(text, sizeof(text), "[admin]\n%.*stoken_file = %s%s\n" ECHO, (int)(mark - lines),
                 lines, token_path, mark + strlen("TOKEN_FILE"));
    else
        snprintf(text, sizeof(text), "[admin]\n%s\n" ECHO, lines);
    return config_file_load_text(text);
}

GROUP(section, enter, config_file_leave);

TEST(section, without_the_section_there_is_no_admin_interface)
{
    ck_assert_int_eq(config_file_load_text(ECHO), 0);
    ck_assert_uint_eq(config_file.config->admin.n_addresses, 0);
    ck_assert_uint_eq(config_file.config->server.set_aside, UPGRADE_DESCRIPTORS + 4);
    ck_assert_int_eq(config_file_load_text("[reactord]\nseccomp = yes\n" ECHO), 0);
    ck_assert_uint_eq(config_file.config->server.set_aside, 0);
    ck_assert_int_eq(load(""), 0);
    ck_assert_uint_eq(config_file.config->admin.n_addresses, 0);
}

TEST(section, unix_socket_needs_no_other_option)
{
    const struct admin_conf *conf;

    ck_assert_msg(load("address = /run/x.sock") == 0, "%s", config_file.problems);
    conf = &config_file.config->admin;
    ck_assert_uint_eq(conf->n_addresses, 1);
    ck_assert_uint_eq(conf->file.mode, 0600);
    ck_assert(conf->file.set_mode);
    ck_assert_ptr_null(conf->token);
    ck_assert(!conf->allow_remote);
    ck_assert(conf->write);
    ck_assert_int_eq(conf->request_timeout_ns, 10 * NS_PER_S);
    ck_assert_uint_eq(conf->max_connections, 64);
    ck_assert_uint_gt(config_file.config->server.set_aside, 64);
}

TEST(section, several_addresses_with_a_token_are_taken)
{
    const struct admin_conf *conf;

    ck_assert_msg(load("address = @a, 127.0.0.1:9, [::1]:9\nTOKEN_FILE\nmode = 660\nwrite = no\n"
                       "max_connections = 3\nrequest_timeout = 1s") == 0,
                  "%s", config_file.problems);
    conf = &config_file.config->admin;
    ck_assert_uint_eq(conf->n_addresses, 3);
    ck_assert_str_eq(conf->token, TOKEN);
    ck_assert_uint_eq(conf->file.mode, 0660);
    ck_assert(!conf->write);
    ck_assert_uint_eq(conf->max_connections, 3);
}

TEST(section, a_remote_address_must_be_allowed)
{
    ck_assert_msg(load("address = *:9\nTOKEN_FILE\nallow_remote = yes") == 0, "%s",
                  config_file.problems);
    ck_assert_uint_eq(config_file.config->admin.n_addresses, 2);
}

static const struct {
    const char *lines, *problem;
} bad[] = {
    {"address = 127.0.0.1:9", "t.ini:2: [admin] address: '127.0.0.1:9' needs a token"},
    {"address = @a, [::1]:9", "t.ini:2: [admin] address: '[::1]:9' needs a token"},
    {"address = 192.0.2.1:9\nTOKEN_FILE",
     "t.ini:2: [admin] address: other hosts can reach '192.0.2.1:9'"},
    {"address = *:9\nTOKEN_FILE\nallow_remote = no",
     "t.ini:2: [admin] address: other hosts can reach '0.0.0.0:9'"},
    {"address = [::]:9\nTOKEN_FILE", "t.ini:2: [admin] address: other hosts can reach '[::]:9'"},
    {"address = 127.0.0.1:7\nTOKEN_FILE",
     "t.ini:2: [admin] address: '127.0.0.1:7' is taken by [listen e]"},
    {"address = @a, @a", "t.ini:2: [admin] address: '@a' is given twice"},
    {"address = admin.sock:9", "t.ini:2: [admin] address: 'admin.sock:9' is a host name"},
    {"address = @a,", "t.ini:2: [admin] address: an address is missing beside a comma"},
    {"address = @a\nTOKEN_FILE", "t.ini:3: [admin] token_file: has no effect without a TCP"},
    {"address = @a\nallow_remote = yes", "t.ini:3: [admin] allow_remote: has no effect without"},
    {"address = 127.0.0.1:9\nTOKEN_FILE\nmode = 600", "t.ini:4: [admin] mode: has no effect"},
    {"write = no", "t.ini:2: [admin] write: has no effect without an admin interface"},
    {"max_connections = 3", "t.ini:2: [admin] max_connections: has no effect without an admin"},
    {"address = @a\nmode = 888", "t.ini:3: [admin] mode: '888' is not a mode"},
    {"address = @a\nmax_connections = 0", "t.ini:3: [admin] max_connections: '0' is out of range"},
    {"address = @a\nrequest_timeout = 0", "t.ini:3: [admin] request_timeout: '0' is out of range"},
    {"address = 127.0.0.1:9\ntoken_file = token", "t.ini:3: [admin] token_file: 'token' is not an"},
    {"address = 127.0.0.1:9\ntoken_file = /nonexistent/token",
     "t.ini:3: [admin] token_file: '/nonexistent/token' cannot be opened: No such file"},
    {"address = 127.0.0.1:9\ntoken_file = /dev/null",
     "t.ini:3: [admin] token_file: '/dev/null' is not a regular file"},
    {"address = 127.0.0.1:9\ntoken_file = /tmp", "t.ini:3: [admin] token_file: '/tmp' is a direct"},
};

TEST_EACH(section, problem_has_its_line, ARRAY_LEN(bad))
{
    ck_assert_int_eq(load(bad[_i].lines), -EINVAL);
    ck_assert_msg(strstr(config_file.problems, bad[_i].problem) == config_file.problems, "%s",
                  config_file.problems);
    ck_assert_ptr_eq(strchr(config_file.problems, '\n'), strrchr(config_file.problems, '\n'));
}

#define LONG16  "0123456789abcdef"
#define LONG128 LONG16 LONG16 LONG16 LONG16 LONG16 LONG16 LONG16 LONG16
#define LONG512 LONG128 LONG128 LONG128 LONG128

static const struct {
    const char *content;
    size_t len;
    mode_t mode;
    const char *problem; /* "": it is taken */
} tokens[] = {
    {TOKEN, 16, 0600, ""},
    {TOKEN " \r\n\n", 20, 0640, ""},
    {LONG512 "\n", 513, 0400, ""},
    {"", 0, 0600, "is empty"},
    {"\n \n", 3, 0600, "is empty"},
    {"0123456789abcde", 15, 0600, "has a token of less than 16 characters"},
    {LONG512 "x", 513, 0600, "has a token of more than 512 characters"},
    {LONG512 LONG16, 528, 0600, "has a token of more than 512 characters"},
    {TOKEN "\n" TOKEN, 33, 0600, "has blanks or bytes that are not printable"},
    {TOKEN "\0" TOKEN, 33, 0600, "has blanks or bytes that are not printable"},
    {TOKEN "\xc3\xa4", 18, 0600, "has blanks or bytes that are not printable"},
    {TOKEN, 16, 0644, "can be read by all or written by others"},
    {TOKEN, 16, 0620, "can be read by all or written by others"},
};

TEST_EACH(section, token_is_one_line_readable_by_the_owner_and_group, ARRAY_LEN(tokens))
{
    int rc;

    ck_assert_int_eq(unlink("token"), 0);
    write_token(tokens[_i].content, tokens[_i].len, tokens[_i].mode);
    rc = load("address = 127.0.0.1:9\nTOKEN_FILE");
    ck_assert_int_eq(rc, tokens[_i].problem[0] == '\0' ? 0 : -EINVAL);
    ck_assert_msg(rc == 0 || strstr(config_file.problems, tokens[_i].problem), "%s",
                  config_file.problems);
    ck_assert_ptr_null(strstr(config_file.problems, "abcdef")); /* never shown */
}
