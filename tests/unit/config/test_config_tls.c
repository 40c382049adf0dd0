/* config/config_tls: profiles and their users, what a reload keeps, and where problems are told. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/config_compare.h"
#include "support/certificates.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "tls/tls_profile.h"
#include "tls/tls_sections.h"
#include "tls/tls_slot.h"

#define LISTEN "[listen f]\naddress = 127.0.0.1:8\nservice = echo\n"
#define ECHO   "[listen e]\naddress = 127.0.0.1:7\nservice = echo\ntls = t\n"

static struct certificate a;
static char here[256], text[2048];
static struct config *running;
static struct config_compare *changes;

static void setup(void)
{
    text_file_enter();
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    certificates_make(&a, &(struct certificate_wish){.name = "a.example"});
    certificates_write("a.pem", "ck", &a, &a);
}

static void teardown(void)
{
    config_compare_destroy(changes);
    config_free(running);
    certificates_free(&a);
    config_file_leave();
}

/* ${more} may have a %s for the directory. */
static int load(const char *more)
{
    char section[1024];

    snprintf(section, sizeof(section), more, here, here);
    snprintf(text, sizeof(text), "%s%s", ECHO, section);
    return config_file_load_text(text);
}

static void run(const char *more)
{
    ck_assert_msg(load(more) == 0, "%s", config_file.problems);
    running = config_file.config;
    config_file.config = NULL;
}

static void reload(const char *more)
{
    struct config *next;
    char section[1024], *problems = NULL;
    size_t size;
    FILE *out = open_memstream(&problems, &size);
    int rc;

    snprintf(section, sizeof(section), more, here, here);
    snprintf(text, sizeof(text), "%s%s", ECHO, section);
    text_file_write_text("t.ini", text);
    rc = config_reload(&next, "t.ini", running, out);
    fclose(out);
    ck_assert_msg(rc == 0, "%s", problems);
    free(problems);
    config_file.config = next;
    config_compare_destroy(changes);
    ck_assert_int_eq(config_compare_create(&changes, running, next), 0);
}

GROUP(profiles, setup, teardown);

TEST(profiles, a_listener_has_the_slot_of_its_section)
{
    const struct server_conf *conf;
    struct tls_profile *p;
    const char *name;

    run("[tls t]\ncertificate = %s/a.pem\n");
    conf = &running->server;
    ck_assert_uint_eq(conf->n_tls, 1);
    ck_assert_ptr_nonnull(conf->tls[0].slot);
    p = tls_sections_choose(conf->listeners[0].tls.sections, "", &name);
    ck_assert_ptr_eq(p, conf->tls[0].loaded);
    ck_assert_str_eq(name, "t");
    tls_profile_release(p);
}

TEST(profiles, reload_keeps_the_slot_and_an_unchanged_profile)
{
    run("[tls t]\ncertificate = %s/a.pem\n");
    reload("[tls t]\ncertificate = %s/a.pem\n");
    ck_assert_ptr_eq(config_file.config->server.tls[0].slot, running->server.tls[0].slot);
    ck_assert_ptr_eq(config_file.config->server.tls[0].loaded, running->server.tls[0].loaded);
    ck_assert_uint_eq(changes->n, 0);
}

TEST(profiles, changed_contents_of_a_file_are_a_change)
{
    struct config_compare_text line;

    run("[tls t]\ncertificate = %s/a.pem\n");
    certificates_free(&a);
    certificates_make(&a, &(struct certificate_wish){.name = "a.example"});
    certificates_write("a.pem", "ck", &a, &a);
    reload("[tls t]\ncertificate = %s/a.pem\n");
    ck_assert_ptr_ne(config_file.config->server.tls[0].loaded, running->server.tls[0].loaded);
    ck_assert_uint_eq(changes->n, 1);
    ck_assert_str_eq(config_compare_text(&line, &changes->list[0]),
                     "[tls t] certificates, keys or CAs in the files have changed (new "
                     "connections)");
}

TEST(profiles, changed_option_is_a_change_besides_the_files)
{
    struct config_compare_text line;

    run("[tls t]\ncertificate = %s/a.pem\n");
    reload("[tls t]\ncertificate = %s/a.pem\nmin_version = 1.3\n");
    ck_assert_uint_eq(changes->n, 1);
    ck_assert_str_eq(config_compare_text(&line, &changes->list[0]),
                     "[tls t] min_version: 1.2 -> 1.3 (new connections)");
}

static const struct {
    const char *more, *problem;
} broken[] = {
    {"[tls abc]\n[listen f]\naddress = 127.0.0.1:8\nservice = echo\ntls = abd\n[tls t]\ncertificate = %s/a.pem\n",
     "t.ini:9: [listen f] tls: there is no [tls abd] (did you mean 'abc'?)\n"},
    {"[tls abc]\ncertificate = %s/a.pem\n[tls t]\ncertificate = %1$s/a.pem\n" LISTEN
     "tls = t, abc, abd\n",
     "t.ini:12: [listen f] tls: there is no [tls abd] (did you mean 'abc'?)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n" LISTEN "tls = t, T\n",
     "t.ini:10: [listen f] tls: 't' is given twice (the NAME of a [tls NAME], or several, "
     "comma-separated)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n" LISTEN "tls = t,\n",
     "t.ini:10: [listen f] tls: a name is missing beside a comma (the NAME of a [tls NAME], or "
     "several, comma-separated)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n" LISTEN "tls = t /\n",
     "t.ini:10: [listen f] tls: 't /' is not a name (the NAME of a [tls NAME], or several, "
     "comma-separated)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n" LISTEN "tls = t, s\n[tls s]\nca = %1$s/a.pem\n",
     "t.ini:11: [tls s] certificate: is missing: clients need one (absolute paths)\n"},
    {"[tls t]\ncertificate = %s/a.pem\nalpn = client\n",
     "t.ini:7: [tls t] alpn: client is for sections of upstreams only (a list of protocols)\n"},
    {"[tls t]\ncertificate = %s/a.pem\nalpn = h2, client\n",
     "t.ini:7: [tls t] alpn: client stands beside others (names such as h2, comma-separated, or "
     "client)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[tls s]\nalpn = client\n[upstream u]\nserver.a = @x\ntls = s\n"
     "tls_name = a\nspare = 1\n",
     "t.ini:13: [upstream u] spare: is opened before there is a client, whose protocol [tls s] "
     "offers (alpn = client)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[tls s]\nalpn = client\n[upstream u]\nserver.a = @x\ntls = s\n"
     "tls_name = a\ncheck = tls\n",
     NULL},
    {"[tls t]\ncertificate = %s/a.pem\n[tls s]\ncertificate = %1$s/a.pem\nalpn = client\n", NULL},
    {"[tls t]\ncertificate = %s/a.pem\nnames = a.example, *\n",
     "t.ini:7: [tls t] names: '*' is not a host name (host names or *.DOMAIN, comma-separated)\n"},
    {"[tls t]\ncertificate = %s/a.pem\nnames = a.example, A.example.\n",
     "t.ini:7: [tls t] names: 'A.example.' is given twice (host names or *.DOMAIN, "
     "comma-separated)\n"},
    {"[tls t]\ncertificate = %s/a.pem\nnames = ,a\n",
     "t.ini:7: [tls t] names: a name is missing beside a comma (host names or *.DOMAIN, "
     "comma-separated)\n"},
    {"", "t.ini:4: [listen e] tls: there is no [tls t] (the NAME of a [tls NAME])\n"},
    {"[tls t]\n", "t.ini:5: [tls t] certificate: is missing: clients need one (absolute paths)\n"},
    {"[tls t]\ncertificate = a.pem\n",
     "t.ini:6: [tls t] certificate: 'a.pem' is not an absolute path (absolute paths of files or "
     "directories, comma-separated)\n"},
    {"[tls t]\ncertificate = /nonexistent\n",
     "t.ini:6: [tls t] certificate: /nonexistent: cannot be opened: No such file or directory\n"},
    {"[tls t]\ncertificate = %s/a.pem\nkey = %1$s/a.pem, %1$s/a.pem\n",
     "t.ini:7: [tls t] key: 2 keys for 1 certificates (as many, or none)\n"},
    {"[tls t]\ncertificate = %s/a.pem\nciphers = AES:\n", NULL},
    {"[tls t]\ncertificate = %s/a.pem\nciphers = TLS_X\n",
     "t.ini:7: [tls t] ciphers: 'TLS_X': no cipher match\n"},
    {"[tls t]\ncertificate = %s/a.pem\ngroups = X\n",
     "t.ini:7: [tls t] groups: the library does not know all of 'X'\n"},
    {"[tls t]\ncertificate = %s/a.pem\nalpn = h2,\n",
     "t.ini:7: [tls t] alpn: a protocol is missing beside a comma (names such as h2, "
     "comma-separated, or client)\n"},
    {"[listen p]\naddress = 127.0.0.1:8\nservice = proxy\nroute.a = sni:a -> u\ntls = t\n"
     "client_hello_timeout = 1s\n[upstream u]\nserver.a = @x\n[tls t]\ncertificate = %s/a.pem\n",
     "t.ini:10: [listen p] client_hello_timeout: has no effect with tls (set handshake_timeout)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = /x\ntls = t\n",
     "t.ini:9: [upstream u] tls: server.a is a unix socket, which has no name to verify (set "
     "tls_name)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = @x\ncheck = tls\n",
     "t.ini:9: [upstream u] check: tls needs the settings of a [tls NAME] (set check_tls)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = @x\ntls = t\ntls_name = a\n"
     "check = tls\ncheck_tls = off\n",
     "t.ini:11: [upstream u] check: tls needs the settings of a [tls NAME] (set check_tls)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = @x\ncheck = tls\ncheck_tls = tt\n",
     "t.ini:10: [upstream u] check_tls: there is no [tls tt] (the NAME of a [tls NAME])\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = @x\ncheck = tls\ncheck_tls = /\n",
     "t.ini:10: [upstream u] check_tls: '/' is not a name (the NAME of a [tls NAME], or off)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = /x\ncheck = tcp\ncheck_tls = t\n",
     "t.ini:10: [upstream u] check_tls: server.a is a unix socket, which has no name to verify (set "
     "check_tls_name)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = /x\ncheck = tcp\ncheck_tls = t\n"
     "check_tls_name = :\n",
     "t.ini:11: [upstream u] check_tls_name: ':' is neither (a host name or IP address)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = /x\ncheck = tls\ncheck_tls = t\n"
     "check_tls_name = a.example\n",
     NULL},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = @x\ncheck = tcp\ntls = t\n"
     "tls_name = a\ncheck_tls = off\n",
     NULL},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = /x\ntls = t\ntls_name = :\n",
     "t.ini:10: [upstream u] tls_name: ':' is neither (a host name or IP address)\n"},
    {"[tls t]\ncertificate = %s/a.pem\n[upstream u]\nserver.a = /x\ntls = t\ntls_name = ::1\n",
     NULL},
};

TEST_EACH(profiles, problem_is_reported_at_its_option, ARRAY_LEN(broken))
{
    int rc = load(broken[_i].more);

    ck_assert_int_eq(rc, broken[_i].problem ? -EINVAL : 0);
    if (broken[_i].problem)
        ck_assert_str_eq(config_file.problems, broken[_i].problem);
}

TEST(profiles, key_readable_by_others_is_a_warning)
{
    ck_assert_int_eq(chmod("a.pem", 0644), 0);
    ck_assert_int_eq(load("[tls t]\ncertificate = %s/a.pem\n"), 0);
    ck_assert_ptr_nonnull(strstr(config_file.problems, "t.ini:6: warning: [tls t] certificate: "));
    ck_assert_ptr_nonnull(strstr(config_file.problems, "all users can read the key (chmod o-r)"));
}

static const struct {
    const char *t, *s; /* names of the sections */
    const char *warning;
} twice[] = {
    {"b.example", "c.example", NULL},
    {"b.example", "b.example, c.example",
     "t.ini:14: warning: [listen f] tls: [tls s] is not used for b.example, which is also in [tls "
     "t] before it; names of both: 1\n"},
    {"*.example, x", "x, *.EXAMPLE",
     "t.ini:14: warning: [listen f] tls: [tls s] is never used: all its names, such as *.example "
     "of [tls t], are in the sections before it (set names)\n"},
    {"", "",
     "t.ini:14: warning: [listen f] tls: [tls s] is never used: all its names, such as a.example "
     "of [tls t], are in the sections before it (set names)\n"},
};

TEST_EACH(profiles, a_name_of_two_sections_is_a_warning, ARRAY_LEN(twice))
{
    char more[1024];

    snprintf(more, sizeof(more),
             "[tls t]\ncertificate = %%s/a.pem\nnames = %s\n[tls s]\ncertificate = %%s/a.pem\n"
             "names = %s\n" LISTEN "tls = t, s\n",
             twice[_i].t, twice[_i].s);
    certificates_write("a.pem", "ck", &a, &a);
    ck_assert_int_eq(chmod("a.pem", 0600), 0);
    ck_assert_msg(load(more) == 0, "%s", config_file.problems);
    ck_assert_str_eq(config_file.problems, twice[_i].warning ? twice[_i].warning : "");
}

TEST(profiles, a_section_without_names_behind_another_is_a_warning)
{
    struct certificate b;

    certificates_make(&b, &(struct certificate_wish){.name = "b b", .hosts = "IP:192.0.2.1"});
    certificates_write("b.pem", "ck", &b, &b);
    ck_assert_int_eq(chmod("a.pem", 0600) | chmod("b.pem", 0600), 0);
    ck_assert_int_eq(
        load("[tls t]\ncertificate = %s/a.pem\n[tls s]\ncertificate = %s/b.pem\n" LISTEN
             "tls = t, s\n"),
        0);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:12: warning: [listen f] tls: [tls s] is never used: its certificates "
                     "have no host name (set names in it)\n");
    certificates_free(&b);
}
