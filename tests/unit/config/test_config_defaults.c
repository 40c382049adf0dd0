/* config/config_defaults: values that sections share, where they hold, and who overrides them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "config/config.h"
#include "config/config_compare.h"
#include "listen/listener.h"
#include "net/name_servers.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "tls/tls_conf.h"
#include "upstream/upstream.h"

GROUP(defaults, text_file_enter, config_file_leave);

#define LISTEN(name) "[listen " name "]\naddress = @" name "\n"
#define ECHO(name)   LISTEN(name) "service = echo\n"

/* The idle timeouts of the listeners in seconds, in file order, as `5 3600`. */
static const char *idle(const char *text)
{
    static char list[256];

    list[0] = '\0';
    ck_assert_int_eq(config_file_load_text(text), 0);
    ck_assert_str_eq(config_file.problems, "");
    for (unsigned i = 0; i < config_file.config->server.n_listeners; i++) {
        const struct listener_conf *l = &config_file.config->server.listeners[i];
        size_t len = strlen(list);

        snprintf(list + len, sizeof(list) - len, "%s%lld", i > 0 ? " " : "",
                 (long long)(l->session.idle_timeout_ns / NS_PER_S));
    }
    return list;
}

TEST(defaults, default_holds_for_the_sections_of_its_kind_that_follow)
{
    ck_assert_str_eq(idle(ECHO("a") "[defaults listen]\nidle_timeout = 5s\n" ECHO("b") ECHO("c")),
                     "3600 5 5");
}

TEST(defaults, value_of_the_section_overrides_its_default)
{
    ck_assert_str_eq(idle("[defaults listen]\nidle_timeout = 5s\nbacklog = 7\n" ECHO(
                         "a") "idle_timeout = 9s\n" ECHO("b")),
                     "9 5");
    ck_assert_uint_eq(config_file.config->server.listeners[0].backlog, 7);
}

TEST(defaults, later_default_overrides_single_options_of_an_earlier_one)
{
    ck_assert_str_eq(idle("[defaults listen]\nidle_timeout = 5s\nbacklog = 7\n" ECHO(
                         "a") "[ Defaults Listen ]\nidle_timeout = 6s\n" ECHO("b")),
                     "5 6");
    ck_assert_uint_eq(config_file.config->server.listeners[1].backlog, 7);
}

TEST(defaults, default_holds_in_files_that_are_included_behind_it)
{
    text_file_write_text("b.ini", ECHO("b"));
    text_file_write_text("c.ini", "include = d.ini\n" ECHO("c"));
    text_file_write_text("d.ini", ECHO("d"));
    ck_assert_str_eq(idle("include = b.ini\n[defaults listen]\nidle_timeout = 5s\n"
                          "include = c.ini\n" ECHO("a")),
                     "3600 5 5 5");
}

TEST(defaults, default_of_an_included_file_ends_with_it)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    text_file_write_text("d/1.ini", "[defaults listen]\nidle_timeout = 6s\n" ECHO("b"));
    text_file_write_text("d/2.ini", ECHO("c"));
    text_file_write_text("d/3.ini", "");
    text_file_write_text("e.ini", "[defaults listen]\nidle_timeout = 7s\n");
    ck_assert_str_eq(idle("[defaults listen]\nidle_timeout = 5s\ninclude = d\n"
                          "include = e.ini\n" ECHO("a")),
                     "6 5 5");
    ck_assert_int_eq(remove("d/1.ini") + remove("d/2.ini") + remove("d/3.ini"), 0);
}

TEST(defaults, include_between_defaults_and_their_options_ends_the_section)
{
    text_file_write_text("b.ini", ECHO("b"));
    ck_assert_int_eq(config_file_load_text("[defaults listen]\ninclude = b.ini\nbacklog = 1\n"),
                     -EINVAL);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:3: 'backlog' is in no section (a line [KIND] or [KIND NAME] first)\n");
}

TEST(defaults, required_option_can_be_a_default)
{
    ck_assert_int_eq(config_file_load_text("[defaults listen]\nservice = echo\n" LISTEN("a")), 0);
    ck_assert_int_eq(config_file.config->server.listeners[0].service, LISTENER_ECHO);
}

TEST(defaults, default_without_effect_in_a_section_is_no_error)
{
    const struct listener_conf *l;

    ck_assert_int_eq(
        config_file_load_text(
            "[defaults listen]\nservice = proxy\nupstream = u\n"
            "frame_max_length = 5k\nunix_mode = 600\nhandshake_timeout = 2s\non_deny = close\n"
            "[listen a]\naddress = 127.0.0.1:7\nservice = echo\n" LISTEN(
                "b") "[upstream u]\nserver.a = 127.0.0.1:9\n"),
        0);
    ck_assert_str_eq(config_file.problems, "");
    l = config_file.config->server.listeners;
    ck_assert_ptr_null(l[0].upstream);
    ck_assert_uint_eq(l[0].pipeline.frame.decoder.max_length, 65536);
    ck_assert_str_eq(l[1].upstream, "u");
    ck_assert_int_eq(l[0].on_deny, ADMISSION_RESET); /* nobody is denied */
}

TEST(defaults, family_of_the_section_replaces_that_of_the_defaults)
{
    ck_assert_int_eq(config_file_load_text(
                         ECHO("e") "[defaults upstream]\ncheck = steps\n"
                                   "check_step.1 = send a\ncheck_step.2 = send b\n"
                                   "[upstream u]\nserver.a = 127.0.0.1:9\n"
                                   "[upstream v]\nserver.a = 127.0.0.1:9\ncheck_step.3 = send c\n"
                                   "[upstream w]\nserver.a = 127.0.0.1:9\ncheck = tcp\n"),
                     0);
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_uint_eq(config_file.config->server.upstreams[0].checks.check.n_steps, 2);
    ck_assert_uint_eq(config_file.config->server.upstreams[1].checks.check.n_steps, 1);
    ck_assert_uint_eq(config_file.config->server.upstreams[2].checks.check.n_steps, 0);
}

TEST(defaults, every_kind_with_names_has_defaults)
{
    ck_assert_int_eq(
        config_file_load_text("[defaults tls]\nmin_version = 1.3\n[defaults resolver]\ntries = 7\n"
                              "servers = 127.0.0.1\n[defaults access_log]\ntarget = stderr\n"
                              "[defaults upstream]\nconnect_timeout = 7s\n" ECHO(
                                  "a") "access_log = l\n[tls t]\n[resolver r]\n[access_log l]\n"
                                       "[upstream u]\nserver.a = 127.0.0.1:9\n"),
        0);
    ck_assert_str_eq(config_file.problems, "");
    ck_assert_int_eq(config_file.config->server.tls[0].profile.min_version, TLS_VERSION_1_3);
    ck_assert_uint_eq(config_file.config->server.resolvers[0].tries, 7);
    ck_assert_str_eq(config_file.config->server.access_logs[0].where, "stderr");
    ck_assert_int_eq(config_file.config->server.upstreams[0].connect_timeout_ns, 7 * NS_PER_S);
}

TEST(defaults, bad_default_is_told_once_and_not_for_each_section)
{
    text_file_write_text("b.ini",
                         "\n[defaults listen]\nidle_timeout = 5\ncolour = 1\n" ECHO("b") ECHO("c"));
    ck_assert_int_eq(config_file_load_text("include = b.ini\n" ECHO("a")), -EINVAL);
    ck_assert_ptr_eq(strstr(config_file.problems, "b.ini:3: [defaults listen] idle_timeout: "),
                     config_file.problems);
    ck_assert_ptr_nonnull(strstr(config_file.problems, "\nb.ini:4: [defaults listen] colour: "));
    ck_assert_ptr_null(strstr(config_file.problems, "[listen "));
}

TEST(defaults, problem_of_a_default_in_a_section_names_both)
{
    text_file_write_text("b.ini",
                         "[defaults listen]\nmax_connections_per_client = 9\n" ECHO(
                             "b") "max_connections = 8\n" ECHO("c") "max_connections = 9\n");
    ck_assert_int_eq(config_file_load_text("include = b.ini\n"), -EINVAL);
    ck_assert_str_eq(config_file.problems,
                     "b.ini:2: [listen b] max_connections_per_client: is above max_connections "
                     "(at most that)\n");
}

#define E "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n"

/* Text in the file, and the beginning of the only line that is then told. */
static const struct {
    const char *text;
    const char *problem;
} broken[] = {
    {E "defaults\n", "t.ini:4: 'defaults': no '=' (key = value; here it is [defaults listen] "},
    {E "[defaults]\n", "t.ini:4: [defaults] needs a kind of section ([defaults listen], "
                       "[defaults upstream], [defaults tls], [defaults resolver], "
                       "[defaults limits], [defaults access_log])"},
    {E "[defaults boss]\n", "t.ini:4: [defaults boss] is not known ([defaults listen], "},
    {E "[defaults listne]\n",
     "t.ini:4: [defaults listne] is not known (did you mean [defaults listen]?)"},
    {E "[default listen]\n",
     "t.ini:4: [default listen] is not known (did you mean [defaults KIND]?)"},
    {E "[defaults listen x]\n", "t.ini:4: '[defaults listen x]': not the name of a section ("},
    {E "[defaults listen]\naddress = *:1\n",
     "t.ini:5: [defaults listen] address: has no default: it differs from section to section (in "
     "each [listen NAME])"},
    {E "[defaults listen]\nroute.a = sni:a -> b\n",
     "t.ini:5: [defaults listen] route.a: has no default: "},
    {E "[defaults upstream]\nserver.a = *\n",
     "t.ini:5: [defaults upstream] server.a: has no default: "},
    {E "[defaults tls]\nkey = /x\n", "t.ini:5: [defaults tls] key: has no default: "},
    {E "[defaults listen]\nidle_timeuot = 5s\n",
     "t.ini:5: [defaults listen] idle_timeuot: unknown option (did you mean 'idle_timeout'?)"},
    {E "[defaults listen]\nconnect_timeout = 5s\n",
     "t.ini:5: [defaults listen] connect_timeout: unknown option here (it belongs to [upstream "
     "NAME])"},
    {"[defaults listen]\nidle_timeout = 5\n" E "[listen f]\naddress = @x\nservice = echo\n",
     "t.ini:2: [defaults listen] idle_timeout: '5' is not a number with a unit (0 to 365d, "},
    {"[defaults listen]\nidle_timeout = 5s\nidle_timeout = 6s\n" E,
     "t.ini:3: [defaults listen] idle_timeout: is set twice (first on line 2)"},
    {"[defaults listen]\nmirror = nobody\n" E,
     "t.ini:2: [listen e] mirror: there is no [upstream nobody] (the NAME of an "},
    {"[defaults listen]\nmax_connections_per_client = 10\n" E "max_connections = 9\n",
     "t.ini:2: [listen e] max_connections_per_client: is above max_connections (at most that)"},
    {"[defaults listen]\nfault_rate = 1k\n" E,
     "t.ini:2: [listen e] fault_rate: faults are not allowed (set allow_faults = yes"},
    {"[defaults listen]\ninclude = x\n" E, "t.ini:2: include: 'x' cannot be opened: "},
    {"[defaults listen]\n" E "include = x\n",
     "t.ini:5: include: must come before the first section of a file, except [defaults KIND]"},
};

TEST_EACH(defaults, problem_has_its_line_and_is_reported_once, ARRAY_LEN(broken))
{
    ck_assert_int_eq(config_file_load_text(broken[_i].text), -EINVAL);
    ck_assert_msg(strncmp(config_file.problems, broken[_i].problem, strlen(broken[_i].problem)) ==
                      0,
                  "%s", config_file.problems);
    ck_assert_str_eq(strchr(config_file.problems, '\n'),
                     strstr(config_file.problems, "'defaults'")
                         ? "\nt.ini:0: for lines of HAProxy or nginx see reactord-migrating(7)\n"
                         : "\n");
}

TEST(defaults, changed_default_is_a_change_of_each_section_that_uses_it)
{
    struct config *before;
    struct config_compare *cmp;

    ck_assert_int_eq(config_file_load_text("[defaults listen]\nbacklog = 5\n" ECHO("a")
                                               ECHO("b") "backlog = 6\n" ECHO("c")),
                     0);
    before = config_file.config;
    config_file.config = NULL;
    ck_assert_int_eq(config_file_load_text("[defaults listen]\nbacklog = 7\n" ECHO("a")
                                               ECHO("b") "backlog = 6\n" ECHO("c") "backlog = 5\n"),
                     0);
    ck_assert_int_eq(config_compare_create(&cmp, before, config_file.config), 0);
    ck_assert_uint_eq(cmp->n, 1);
    ck_assert_str_eq(cmp->list[0].name, "a");
    ck_assert_str_eq(cmp->list[0].key, "backlog");
    config_compare_destroy(cmp);
    config_free(before);
}
