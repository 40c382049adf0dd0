/* limits/acl: the first rule that has a client decides, and who is turned away is counted. */
#include <string.h>

#include "limits/acl.h"
#include "net/address.h"
#include "net/cidr.h"
#include "support/suite.h"

static struct cidr blocks[8];
static bool allow[8];
static struct acl_conf conf;
static struct acl *rules;

static void setup(void)
{
    conf = (struct acl_conf){.blocks = blocks, .allow = allow};
    rules = NULL;
}

static void teardown(void)
{
    acl_destroy(rules);
}

static void rule(bool allowed, const char *word)
{
    ck_assert_int_eq(cidr_parse(&blocks[conf.n], word), 0);
    allow[conf.n++] = allowed;
}

static void make(void)
{
    ck_assert_int_eq(acl_create(&rules, &conf), 0);
}

static bool allows(const char *word)
{
    struct address a[2];

    ck_assert_int_eq(address_parse(a, 2, word), 1);
    return acl_allows(rules, "test", &a[0]);
}

GROUP(rules, setup, teardown);

TEST(rules, acl_without_rules_decides_nothing)
{
    make();
    ck_assert_ptr_null(rules);
    ck_assert(allows("10.0.0.1:1"));
}

TEST(rules, empty_allow_list_denies_every_client)
{
    conf.deny_others = true;
    make();
    ck_assert(!allows("10.0.0.1:1"));
    ck_assert(!allows("[::1]:1"));
    ck_assert(!allows("/run/x"));
}

TEST(rules, the_first_rule_decides)
{
    rule(true, "10.0.0.5");
    rule(false, "10.0.0.0/8");
    rule(true, "10.0.0.0/7"); /* and 11.0.0.0/8 in it */
    rule(false, "2001:db8::/32");
    make();
    ck_assert(allows("10.0.0.5:1"));
    ck_assert(!allows("10.0.0.6:1"));
    ck_assert(allows("11.0.0.6:1"));
    ck_assert(allows("12.0.0.6:1"));
    ck_assert(!allows("[2001:db8::1]:1"));
    ck_assert(!allows("[::ffff:10.0.0.6]:1"));
    ck_assert(allows("/run/x"));
}

TEST(rules, unix_clients_have_a_rule_of_their_own)
{
    rule(false, "unix");
    make();
    ck_assert(!allows("/run/x"));
    ck_assert(!allows("@x"));
    ck_assert(allows("10.0.0.1:1"));
}
