/*
 * config/config_acl: who comes in, of lists and files in one order; and what is wrong with them,
 * each at its line.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "option/acl_parser.h"
#include "config/config.h"
#include "limits/acl.h"
#include "net/address.h"
#include "support/config_file.h"
#include "support/suite.h"
#include "support/text_file.h"

static char dir[PATH_MAX];

static void setup(void)
{
    text_file_enter();
    ck_assert_ptr_nonnull(getcwd(dir, sizeof(dir)));
}

/* A listener with ${options}, in which %s is the test's directory. */
static int load(const char *options)
{
    char *lines, *text;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    ck_assert_int_ge(asprintf(&lines, options, dir, dir, dir), 0);
#pragma GCC diagnostic pop
    ck_assert_int_ge(
        asprintf(&text, "[listen e]\naddress = 127.0.0.1:7\nservice = echo\n%s\n", lines), 0);
    config_file_load_text(text);
    free(lines);
    free(text);
    return config_file.rc;
}

/* Who of these, with blanks between, comes in? */
static void expect(const char *words, bool allowed)
{
    struct acl *rules;
    struct address a[2];
    char word[64];
    int used;

    ck_assert_msg(config_file.rc == 0, "%s", config_file.problems);
    ck_assert_int_eq(acl_create(&rules, &config_file.config->server.listeners[0].access), 0);
    for (; sscanf(words, "%63s%n", word, &used) == 1; words += used) {
        ck_assert_int_eq(address_parse(a, 2, word), 1);
        ck_assert_msg(acl_allows(rules, "e", &a[0]) == allowed, "%s", word);
    }
    acl_destroy(rules);
}

GROUP(rules, setup, config_file_leave);

TEST(rules, without_options_every_client_is_allowed)
{
    load("");
    expect("10.0.0.1:1 [::1]:1 /run/x", true);
    load("allow =\ndeny =\naccess_rules =");
    expect("10.0.0.1:1 [::1]:1 /run/x", true);
}

TEST(rules, deny_alone_denies_matching_clients)
{
    load("deny = 10.0.0.0/8, unix");
    expect("10.0.0.1:1 /run/x", false);
    expect("11.0.0.1:1 [::1]:1", true);
}

TEST(rules, allow_alone_denies_clients_that_do_not_match)
{
    load("allow = 10.0.0.0/8 ,2001:db8::/32");
    expect("10.0.0.1:1 [2001:db8::1]:1 [::ffff:10.1.1.1]:1", true);
    expect("11.0.0.1:1 [::1]:1 /run/x", false);
}

TEST(rules, deny_precedes_allow_in_any_order_of_lines)
{
    static const char *const both[] = {"allow = 10.0.0.0/8\ndeny = 10.0.0.5",
                                       "deny = 10.0.0.5\nallow = 10.0.0.0/8"};

    for (unsigned i = 0; i < 2; i++) {
        load(both[i]);
        expect("10.0.0.6:1", true);
        expect("10.0.0.5:1 11.0.0.1:1", false);
    }
}

TEST(rules, list_continues_in_files)
{
    text_file_write_text(
        "bad", "# nobody from here\n10.0.0.5 # but why\n\n  2001:db8::/32\t\r\n11.0.0.0/8");
    text_file_write_text("good", "10.0.0.5\n10.0.0.0/24\n");
    load("deny = file:%s/bad, 12.0.0.1\nallow = 10.0.1.0/24, file:%s/good, 12.0.0.0/8");
    expect("10.0.0.6:1 10.0.1.1:1 12.0.0.2:1", true);
    expect("10.0.0.5:1 [2001:db8::1]:1 11.0.0.1:1 10.0.2.1:1 12.0.0.1:1", false);
}

TEST(rules, empty_allow_file_denies_every_client)
{
    text_file_write_text("none", "# none\n");
    load("allow = file:%s/none");
    expect("10.0.0.6:1 [::1]:1 /run/x", false);
}

TEST(rules, a_rules_file_has_an_order)
{
    text_file_write_text("rules", "allow 10.0.0.5\ndeny\t10.0.0.0/8 # the rest\nallow all\n");
    load("access_rules = %s/rules");
    expect("10.0.0.5:1 11.0.0.1:1 [::1]:1 /run/x", true);
    expect("10.0.0.6:1", false);
    text_file_write_text("rules", "deny unix\nallow 10.0.0.0/8\ndeny all");
    load("access_rules = %s/rules");
    expect("10.0.0.5:1", true);
    expect("11.0.0.1:1 [::1]:1 /run/x", false);
}

/* Options, and the beginning of the only line that is then told. */
static const struct {
    const char *options;
    const char *problem;
} broken[] = {
    {"deny = 10.0.0.0/33", "t.ini:4: [listen e] deny: the prefix of '10.0.0.0/33' is longer "},
    {"deny = 10.0.0.1/8",
     "t.ini:4: [listen e] deny: '10.0.0.1/8' has bits set after its prefix; did you mean "
     "10.0.0.0/8? (10.0.0.0/8, 192.0.2.1, "},
    {"allow = localhost", "t.ini:4: [listen e] allow: 'localhost' is not a block of addresses ("},
    {"allow = 10.0.0.1,", "t.ini:4: [listen e] allow: a block of addresses is missing beside "},
    {"allow = file:x", "t.ini:4: [listen e] allow: 'x' is not the absolute path of a file ("},
    {"allow = file:", "t.ini:4: [listen e] allow: '' is not the absolute path of a file ("},
    {"allow = file:/x/", "t.ini:4: [listen e] allow: '/x/' is not the absolute path of a file ("},
    {"access_rules = x", "t.ini:4: [listen e] access_rules: 'x' is not the absolute path "},
    {"deny = file:/nonexistent",
     "t.ini:4: [listen e] deny: '/nonexistent' cannot be opened: No such file or directory"},
    {"access_rules = /nonexistent",
     "t.ini:4: [listen e] access_rules: '/nonexistent' cannot be opened: No such file or "},
    {"access_rules = /dev/null",
     "t.ini:4: [listen e] access_rules: '/dev/null' is not a regular file"},
    {"access_rules = /nonexistent\nallow = 10.0.0.1\n",
     "t.ini:5: [listen e] allow: cannot be combined with access_rules (one or the other)\n"},
    {"on_deny = close",
     "t.ini:4: [listen e] on_deny: has no effect: no client is denied (set allow, deny, "},
    {"deny = 10.0.0.0/8\nallow = 10.1.0.0/16, 11.0.0.0/8",
     "t.ini:5: [listen e] allow: '10.1.0.0/16' never applies: '10.0.0.0/8' is denied ("},
};

TEST_EACH(rules, problem_of_an_option_has_its_line, ARRAY_LEN(broken))
{
    ck_assert_int_eq(load(broken[_i].options), -EINVAL);
    ck_assert_msg(strstr(config_file.problems, broken[_i].problem), "%s", config_file.problems);
}

TEST(rules, lists_of_different_files_may_overlap)
{
    text_file_write_text("bad", "10.0.0.0/8");
    ck_assert_int_eq(load("deny = file:%s/bad\nallow = 10.1.0.0/16"), 0);
    ck_assert_int_eq(load("allow = file:%s/bad\ndeny = 0.0.0.0/0"), 0);
}

/*
 * Each of ${lines}, with newlines between, is in what was told, in this order, behind the
 * directory; no other is.
 */
static void expect_problems(const char *lines)
{
    const char *at = config_file.problems;
    char line[512];

    ck_assert_int_eq(config_file.rc, -EINVAL);
    while (*lines != '\0') {
        int len = snprintf(line, sizeof(line), "%s/%.*s", dir, (int)strcspn(lines, "\n"), lines);

        ck_assert_msg(strncmp(at, line, (size_t)len) == 0, "not '%s': %s", line, at);
        at = strchr(at, '\n') + 1;
        lines += strcspn(lines, "\n") + 1;
    }
    ck_assert_str_eq(at, "");
}

TEST(rules, all_problems_of_a_list_are_reported_with_their_lines)
{
    text_file_write_text(
        "bad", "10.0.0.0/8\n10.0.0.1/8\nallow 10.0.0.1\n# fine\nnowhere\n1.1.1.1 2.2.2.2\n"
               "deny 10.0.0.1 x\n");
    load("deny = file:%s/bad");
    expect_problems(
        "bad:2: '10.0.0.1/8' has bits set after its prefix; did you mean 10.0.0.0/8? (\n"
        "bad:3: 'allow 10.0.0.1' is for a file of access_rules (\n"
        "bad:5: 'nowhere' is not a block of addresses (10.0.0.0/8, \n"
        "bad:6: '1.1.1.1 2.2.2.2' is more than one block (\n"
        "bad:7: 'deny 10.0.0.1 x' is for a file of access_rules (\n");
}

TEST(rules, all_problems_of_a_rules_file_are_reported_with_their_lines)
{
    text_file_write_text(
        "rules", "10.0.0.0/8\npermit 10.0.0.1\nallow\nallow 1.1.1.1 deny\ndeny 1.1.1.1/40\n");
    load("access_rules = %s/rules");
    expect_problems("rules:1: '10.0.0.0/8' is not a rule (\n"
                    "rules:2: 'permit 10.0.0.1' is not a rule (allow or deny, and a block \n"
                    "rules:3: 'allow' is not a rule (\n"
                    "rules:4: 'allow 1.1.1.1 deny' is not a rule (\n"
                    "rules:5: the prefix of '1.1.1.1/40' is longer than the address (\n");
}

TEST(rules, unreachable_rule_is_reported_with_the_rule_before_it)
{
    text_file_write_text("rules",
                         "allow 10.0.0.0/8\nallow 10.1.0.0/16\ndeny 10.0.0.5\ndeny all\nallow ::1\n"
                         "deny all\n");
    load("access_rules = %s/rules");
    expect_problems("rules:3: 'deny 10.0.0.5' never applies: line 1 has 'allow 10.0.0.0/8' (\n"
                    "rules:5: 'allow ::1' never applies: line 4 has 'deny all' (\n");
}

/* Lists in which each line decides for some client, and who comes in and who does not. */
static const struct {
    const char *rules;
    const char *in, *out;
} living[] = {
    {"deny 192.0.2.9\nallow 192.0.2.0/24\nallow unix\ndeny all\n", "192.0.2.8:1 /run/x",
     "192.0.2.9:1 10.0.0.1:1 [::1]:1"},
    {"deny unix\nallow all\n", "10.0.0.1:1 [::1]:1", "/run/x"},
    {"deny ::/0\nallow 172.16.0.0/13\ndeny 172.16.0.0/12\nallow all\n",
     "172.17.0.1:1 10.0.0.1:1 /run/x", "[::1]:1 172.24.0.1:1"},
    {"allow 0.0.0.0/0\ndeny all\n", "10.0.0.1:1", "[::1]:1 /run/x"},
    {"allow 0.0.0.0/0\nallow ::/0\ndeny unix\nallow all\n", "10.0.0.1:1 [::1]:1", "/run/x"},
};

TEST_EACH(rules, rule_is_reachable_while_one_of_its_blocks_is_undecided, ARRAY_LEN(living))
{
    text_file_write_text("rules", living[_i].rules);
    load("access_rules = %s/rules");
    expect(living[_i].in, true);
    expect(living[_i].out, false);
}

TEST(rules, all_is_reachable_while_one_of_its_blocks_is_not_denied)
{
    load("deny = unix, ::/0\nallow = all");
    expect("10.0.0.1:1", true);
    expect("[::1]:1 /run/x", false);
    ck_assert_int_eq(load("deny = unix, ::/0, 0.0.0.0/0\nallow = all"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(config_file.problems,
                                 "allow: 'all' never applies: '0.0.0.0/0', '::/0', 'unix' are "
                                 "denied (deny comes first; "));
}

TEST(rules, unreachable_line_of_several_blocks_is_reported_once_as_written)
{
    text_file_write_text("rules", "deny 0.0.0.0/0 # old\ndeny unix\ndeny ::/0\nallow all\n");
    load("access_rules = %s/rules");
    expect_problems("rules:4: 'allow all' never applies: line 1 has 'deny 0.0.0.0/0', line 3 has "
                    "'deny ::/0', line 2 has 'deny unix' (\n");
    text_file_write_text("rules", "deny ::ffff:10.0.0.0/104\nallow 10.1.1.1\nallow all");
    load("access_rules = %s/rules");
    expect_problems("rules:2: 'allow 10.1.1.1' never applies: line 1 has 'deny "
                    "::ffff:10.0.0.0/104' (\n");
    text_file_write_text("rules", "deny all\nallow all");
    load("access_rules = %s/rules");
    expect_problems("rules:2: 'allow all' never applies: line 1 has 'deny all' (\n");
}

TEST(rules, last_rule_must_be_for_all_clients)
{
    text_file_write_text("rules", "allow 10.0.0.0/8\ndeny 0.0.0.0/0\n# the end\n");
    load("access_rules = %s/rules");
    expect_problems(
        "rules:2: the last rule is not for all clients (end with 'allow all' or 'deny all')\n");
    text_file_write_text("rules", "# none\n");
    load("access_rules = %s/rules");
    expect_problems("rules:0: the last rule is not for all clients (\n");
}

/* Each `all` is three rules, and these are two short of the limit. */
TEST(rules, too_many_rules_are_reported_at_the_option_that_adds_them)
{
    static char text[ACL_PARSER_RULES / 3 * 4];

    for (size_t i = 0; i < sizeof(text); i += 4)
        memcpy(text + i, "all\n", 4);
    text_file_write("all", text, sizeof(text));
    ck_assert_int_eq(load("deny = file:%s/all"), 0);
    ck_assert_int_eq(load("deny = file:%s/all\nallow = 10.0.0.0/8, 11.0.0.0/8"), -EINVAL);
    ck_assert_str_eq(config_file.problems,
                     "t.ini:5: [listen e] allow: too many rules, at most 2000000\n");
}

TEST(rules, bytes_that_are_no_text_are_reported)
{
    static const char bytes[] = "10.0.0.0/8\n10.0.0.\0001\n\xff\n";
    char longer[2000];

    text_file_write("bad", bytes, sizeof(bytes) - 1);
    load("deny = file:%s/bad");
    expect_problems("bad:2: '10.0.0.\\x001' is not a rule\nbad:3: '\\xff' is not a block of \n");
    memset(longer, '1', sizeof(longer));
    text_file_write("bad", longer, sizeof(longer));
    load("deny = file:%s/bad");
    expect_problems("bad:1: '1111111111\n");
}

TEST(rules, dump_of_rules_is_read_back_as_the_same)
{
    text_file_write_text("list", "10.0.0.5\n");
    ck_assert_int_eq(load("deny = file:%s/list, 10.1.0.0/16\nallow = 10.0.0.0/8\non_deny = close"),
                     0);
    text_file_write("again.ini", "", 0);
    {
        FILE *out = fopen("again.ini", "w");

        ck_assert_ptr_nonnull(out);
        ck_assert_int_eq(config_dump(config_file.config, out), 0);
        fclose(out);
    }
    config_file_load("again.ini");
    expect("10.0.0.6:1", true);
    expect("10.0.0.5:1 10.1.0.1:1", false);
}
