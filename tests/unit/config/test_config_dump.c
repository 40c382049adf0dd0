/* config/config_dump: what is written, and that it is read back as the same. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/must.h"
#include "config/config.h"
#include "option/option.h"
#include "ini/ini_types.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

#define ECHO   "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"
#define PROXY  "[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nupstream = u\n"
#define SERVER "[upstream u]\nserver.a = 127.0.0.1:9\n"

GROUP(files, text_file_enter, config_file_leave);

/* What ${write} writes, as a text the caller frees. */
static char *dump_with(int (*write)(const struct config *config, FILE *out))
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(write(config_file.config, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

static char *dump(void)
{
    return dump_with(config_dump);
}

/* The next line of ${text} is ${line}; what follows it. */
static const char *expect_line(const char *text, const char *line)
{
    size_t len = strcspn(text, "\n");

    ck_assert_msg(len == strlen(line) && memcmp(text, line, len) == 0, "%.*s, not %s", (int)len,
                  text, line);
    return text[len] != '\0' ? text + len + 1 : text + len;
}

/* What each option is that is not as it is when nothing is set. */
struct set {
    enum option_section section;
    const char *key;
    const char *lines[2];
};

static const struct set *find_set(const struct set *sets, enum option_section section,
                                  const char *key)
{
    for (; sets->key != NULL; sets++)
        if (sets->section == section && strcmp(sets->key, key) == 0)
            return sets;
    return NULL;
}

/* Defaults of options that have no effect: without handlers, checks, faults and so on. */
static bool without_effect(enum option_section section, const char *key)
{
    static const char *const keys[] = {"executor_delay",
                                       "unix_mode",
                                       "unix_user",
                                       "unix_group",
                                       "trusted_proxies",
                                       "fault_drop_as",
                                       "fault_percent",
                                       "fault_clients",
                                       "fault_seed",
                                       "idle_read",
                                       "idle_write",
                                       "idle_all",
                                       "idle_action",
                                       "hash_balance_factor",
                                       "hash_key",
                                       "hash_server",
                                       "ban_exempt",
                                       "check_tls",
                                       "check_tls_name",
                                       "check_http",
                                       "check_http_host",
                                       "check_http_status",
                                       "check_user",
                                       "check_send",
                                       "check_expect",
                                       "check_send_proxy",
                                       "agent_interval",
                                       "agent_send",
                                       "check_interval",
                                       "check_fast_interval",
                                       "check_jitter",
                                       "check_timeout",
                                       "rise",
                                       "fall",
                                       "initial_state",
                                       "on_down",
                                       "on_up",
                                       "on_down_rate",
                                       "spare_max_age",
                                       "send_proxy_tlvs",
                                       "access_log_format",
                                       "access_log_interval",
                                       "proxy_header_timeout",
                                       "client_hello_timeout",
                                       "connect_on",
                                       "tls_start",
                                       "handshake_timeout",
                                       "tls_name"};
    bool is_listen = section == OPTION_LISTEN;

    if (section == OPTION_ADMIN) /* none, as there is no address */
        return strcmp(key, "address") != 0;
    if (is_listen && strcmp(key, "upstream") == 0) /* of an echo service */
        return true;
    for (size_t i = 0; i < ARRAY_LEN(keys) && section >= OPTION_LISTEN; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return is_listen && strncmp(key, "frame_", 6) == 0;
}

static const char *expect_option(const char *text, const struct option *o, const struct set *set,
                                 enum option_section section)
{
    char line[256];

    if (set == NULL) {
        if ((o->flags & OPTION_FAMILY) != 0)
            return text;
        snprintf(line, sizeof(line), "%s%s =%s%s", without_effect(section, o->key) ? "#" : "",
                 o->key, *o->fallback != '\0' ? " " : "", o->fallback);
        return expect_line(text, line);
    }
    for (unsigned i = 0; i < 2 && set->lines[i] != NULL; i++)
        text = expect_line(text, set->lines[i]);
    return text;
}

TEST(files, a_dump_has_every_option_in_the_order_of_the_table)
{
    static const struct set sets[] = {
        {OPTION_LISTEN, "address", {"address = 127.0.0.1:7"}},
        {OPTION_LISTEN, "service", {"service = echo"}},
        {OPTION_LISTEN, "frame_length_end", {"#frame_length_end = \"\\x20\""}},
        {OPTION_LISTEN, "frame_delimiter", {"#frame_delimiter = \"\\n\""}},
        {OPTION_WORKER, "io_ratio", {"io_ratio = 70%"}},
        {OPTION_UPSTREAM, "server.ID", {"server.b = @b", "server.a = @a"}},
        {.key = NULL},
    };
    /* Those that are not in the file come first. */
    static const struct {
        enum option_section section;
        const char *title;
    } sections[] = {{OPTION_REACTORD, "[reactord]"}, {OPTION_BOSS, "[boss]"},
                    {OPTION_EXECUTOR, "[executor]"}, {OPTION_HANDSHAKE, "[handshake]"},
                    {OPTION_ADMIN, "[admin]"},       {OPTION_LISTEN, "[listen e]"},
                    {OPTION_WORKER, "[worker]"},     {OPTION_UPSTREAM, "[upstream u]"}};
    const char *at;
    char *text;

    ck_assert_int_eq(config_file_load_text(
                         "[Listen E]\nservice = echo # c\naddress=127.0.0.1:7\n"
                         "[worker]\nio_ratio = 70%\n[upstream u]\nserver.b=@b\nSERVER.A=\"@a\"\n"),
                     0);
    at = text = dump();
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        const struct option *o;

        at = i > 0 ? expect_line(at, "") : at;
        at = expect_line(at, sections[i].title);
        for (unsigned row = 0; (o = option_row(sections[i].section, row)) != NULL; row++)
            at = expect_option(at, o, find_set(sets, sections[i].section, o->key),
                               sections[i].section);
    }
    ck_assert_str_eq(at, "");
    free(text);
}

/* Load ${text}, then what its dumps say; the dump of each must be the first. */
static void dump_and_load(const char *text)
{
    char *first, *origins, *second, *third;

    ck_assert_msg(config_file_load_text(text) == 0, "%s", config_file.problems);
    first = dump();
    origins = dump_with(config_dump_origins);
    ck_assert_msg(config_file_load_text(first) == 0, "%s%s", config_file.problems, first);
    second = dump();
    ck_assert_str_eq(first, second);
    ck_assert_msg(config_file_load_text(origins) == 0, "%s%s", config_file.problems, origins);
    third = dump();
    ck_assert_str_eq(first, third);
    free(first);
    free(origins);
    free(second);
    free(third);
}

static const char *const dumped[] = {
    "[defaults listen]\nservice = proxy\nupstream = u\nframe_max_length = 5k\nidle_timeout = 5s\n"
    "[defaults upstream]\ncheck = steps\ncheck_step.1 = send x\n"
    "[listen a]\naddress = @a\n[listen b]\naddress = @b\nservice = echo\n"
    "[upstream u]\nserver.a = 127.0.0.1:9\n",
    ECHO,
    PROXY ECHO SERVER "server.b = /run/b weight=3 backup\n[boss]\nthreads = 3\n",
    "[listen e]\nservice = echo\naddress = *:7, @x, [fe80::1%lo]:8, [::ffff:127.0.0.1]:9\n",
    "[listen e]\nservice = echo\naddress = \"/run/a#b\"\n",
    ECHO "[worker]\nstall_threshold = 0\ncpu_affinity = \" 0-3 , 8\"\n[executor]\nthreads = 1\n",
    "[listen e]\nservice = echo\naddress = '/run/a\"b'\n",
    "[listen e]\nservice = echo\naddress = \"/run/it's\"\n",
    "[listen e]\nservice = echo\naddress = \"/run/x\\\"\n",
    "[listen e]\nservice = echo\naddress = '/run/x\\y#\\\\'\n",
    "[listen e]\nservice = echo\naddress = \" 127.0.0.1:7 \"\n",
    "[listen e]\nservice = echo\naddress = /run/gr\xc3\xbc\xc3\x9f e\n",
    ECHO "pipeline = frame\nframe_by = delimiter\nframe_delimiter = \\\\, \\r\\n, \\x2c\n",
    ECHO "pipeline = frame, executor\nframe_by = text_length\nframe_fail_fast = yes\n",
    ECHO "pipeline = idle\nidle_read = 5s\naccess_log = stderr\n[reactord]\nallow_faults = yes\n",
    PROXY SERVER "check = tcp\nfall = 3\neject_failures = 0\nspare = 3\nbalance = maglev\n",
    PROXY SERVER "send_proxy = v2\nsend_proxy_tlvs = crc32c\n",
    ECHO "upstream = \"\"\n[reactord]\nuser = # nobody\n",
    ECHO "[admin]\naddress = @admin, /run/admin\nmode = 660\nwrite = no\n",
};

TEST_EACH(files, dump_is_read_back_as_the_same_configuration, ARRAY_LEN(dumped))
{
    dump_and_load(dumped[_i]);
}

/* Addresses of ${len} bytes, at least 910. */
static void write_addresses(char *out, size_t len)
{
    for (int i = 0, used = 0; i < 9; i++, used += 100)
        sprintf(out + used, "@%d%097d,", i, 0);
    sprintf(out + 900, "@9%0*d", (int)len - 902, 0);
    ck_assert_uint_eq(strlen(out), len);
}

TEST(files, value_of_maximum_length_is_read_back_as_the_same)
{
    char text[2048] = "[listen e]\nservice=echo\naddress=";

    write_addresses(text + strlen(text), INI_LINE_BYTES - strlen("address="));
    dump_and_load(text);
}

#define ROUTED(route)                                                                            \
    "[upstream u]\nserver.a = 127.0.0.1:9\n[listen e]\naddress = 127.0.0.1:7\nservice = proxy\n" \
    "upstream = u\n" route

TEST(files, a_value_with_quotes_inside_is_read_back_as_the_same)
{
    char line[INI_LINE_BYTES + 1] = "route.a=first:\"SSH-\"", text[2048];

    dump_and_load(ROUTED("route.a = first:\"it's\" -> u\n"));
    dump_and_load("[listen e]\naddress = 127.0.0.1:7\nservice = echo\naccess_log = /tmp/x\n"
                  "access_log_format = x:\"it's\" $reason\n");
    while (strlen(line) + strlen(" src:10.0.100.100") <= INI_LINE_BYTES - strlen(" -> u"))
        sprintf(line + strlen(line), " src:10.0.%zu.100", strlen(line) / 10 + 100);
    sprintf(line + strlen(line), "%*s-> u", (int)(INI_LINE_BYTES - strlen(line) - strlen("-> u")),
            "");
    ck_assert_uint_eq(strlen(line), INI_LINE_BYTES);
    snprintf(text, sizeof(text), ROUTED("%s\n"), line);
    dump_and_load(text);
}

TEST(files, a_value_with_variables_fits_in_a_line_of_the_dump)
{
    const size_t most = INI_LINE_BYTES - strlen("address=''");
    char list[2048];

    write_addresses(list, most);
    setenv("LIST", list, 1);
    dump_and_load("[listen e]\nservice = echo\naddress = ${LIST}\n");
    ck_assert_int_eq(config_file_load_text("[listen e]\nservice = echo\naddress = ${LIST}x\n"),
                     -EINVAL);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:3: [listen e] address: the value is too long with its environment "
                     "variables (at most 990 characters)\n");
    unsetenv("LIST");
}

TEST(files, dump_names_the_origin_of_each_value)
{
    static const char *const lines[] = {
        "\nidle_timeout = 5s # more.ini:3 [defaults listen]\n",
        "\nbacklog = 9 # more.ini:6\n",
        "\nallow = # default\n",
        "\nsplice = auto # default\n",
        "\ndeny = 10.0.0.0/8 # more.ini:7\n",
        "\nserver.a = @a # t.ini:3\n",
        "\n#check_interval = 2s # default\n",
    };
    char *text;

    text_file_write_text("more.ini", "# more\n[defaults listen]\nidle_timeout = 5s\n[listen e]\n"
                                     "address=@e\nbacklog = 9 # mine\ndeny = 10.0.0.0/8\n"
                                     "service = proxy\nupstream = u\n");
    ck_assert_int_eq(config_file_load_text("include = more.ini\n[upstream u]\nserver.a=@a\n"), 0);
    text = dump_with(config_dump_origins);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        ck_assert_msg(strstr(text, lines[i]), "%s in\n%s", lines[i], text);
    free(text);
}

TEST(files, origin_that_does_not_fit_is_above_its_value_and_cut_at_the_front)
{
    char path[INI_NAME_BYTES + NAME_MAX], dir[NAME_MAX], text[2048] = "[listen e]\naddress=";
    char *dump_text;

    snprintf(dir, sizeof(dir), "%0250d", 0);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    snprintf(path, sizeof(path), "%s/e\n\\.ini", dir); /* no line ends in a backslash */
    write_addresses(text + strlen(text), INI_LINE_BYTES - strlen("address="));
    strcat(text, "\nservice = echo\n");
    text_file_write_text(path, text);
    snprintf(text, sizeof(text), "include = %s\n", dir);
    dump_and_load(text);
    ck_assert_int_eq(config_file_load_text(text), 0);
    dump_text = dump_with(config_dump_origins);
    ck_assert_ptr_nonnull(strstr(dump_text, "0/e?\\.ini:2\naddress=@0"));
    ck_assert_ptr_nonnull(strstr(dump_text, "service = echo # ...000"));
    free(dump_text);
    ck_assert_int_eq(remove(path), 0);
}

TEST(files, dump_that_cannot_be_written_fails)
{
    FILE *full = fopen("/dev/full", "w");

    ck_assert_ptr_nonnull(full);
    ck_assert_int_eq(config_file_load_text(ECHO), 0);
    ck_assert_int_eq(config_dump(config_file.config, full), -EIO);
    fclose(full);
}
