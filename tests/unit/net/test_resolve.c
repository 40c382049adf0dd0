/* net/resolve, net/name_service: host names, and who is asked for them. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "net/name_service.h"
#include "net/resolve.h"
#include "support/names.h"
#include "support/suite.h"

static int resolve(struct address *out, size_t max, const char *word)
{
    struct dns_terms terms = {.timeout_s = 0};
    int rc = resolve_host(out, max, word, &terms);

    ck_assert_int_eq(terms.ttl_ns, CLOCK_NEVER); /* getaddrinfo(3) does not say */
    return rc;
}

GROUP(resolve, NULL, NULL);

TEST(resolve, a_name_is_resolved_to_its_addresses)
{
    struct address a[16];
    char text[ADDRESS_TEXT_BYTES];

    names_set("db.test", "192.0.2.1");
    ck_assert_int_eq(resolve(a, 16, "db.test:7"), 1);
    ck_assert_str_eq(address_format(text, sizeof(text), &a[0]), "192.0.2.1:7");
    names_set("db.test", "2001:db8::1");
    ck_assert_int_eq(resolve(a, 16, "db.test:7"), 1);
    ck_assert_str_eq(address_format(text, sizeof(text), &a[0]), "[2001:db8::1]:7");
    names_set("db.test", NAMES_UNKNOWN);
    ck_assert_int_eq(resolve(a, 16, "db.test:7"), -ENOENT);
    names_set("db.test", "192.0.2.1,192.0.2.2,192.0.2.1,2001:db8::1,192.0.2.2");
    ck_assert_int_eq(resolve(a, 16, "db.test:7"), 3); /* each once */
    ck_assert_str_eq(address_format(text, sizeof(text), &a[1]), "192.0.2.2:7");
    ck_assert_int_eq(resolve(a, 2, "db.test:7"), 2);
    ck_assert_uint_eq(names_asked(), 5);
}

TEST(resolve, a_link_local_address_in_two_zones_is_two_addresses)
{
    struct address a[4];

    names_set("db.test", "fe80::1%1,fe80::1%2,fe80::1%1");
    ck_assert_int_eq(resolve(a, 4, "db.test:7"), 2);
    ck_assert_uint_eq(a[0].u.in6.sin6_scope_id, 1);
    ck_assert_uint_eq(a[1].u.in6.sin6_scope_id, 2);
}

TEST(resolve, literal_address_is_parsed_without_a_lookup)
{
    struct address a[2], b[2];

    ck_assert_int_eq(resolve(a, 2, "127.0.0.1:7"), 1);
    ck_assert_int_eq(address_parse(b, 2, "127.0.0.1:7"), 1);
    ck_assert(address_equal(&a[0], &b[0]));
    ck_assert_int_eq(resolve(a, 2, "localhost:7"), 2);
    ck_assert_int_eq(resolve(a, 2, "127.1:7"), -EINVAL);
    ck_assert_int_eq(resolve(a, 2, "*:7"), 2);
    ck_assert_int_eq(resolve(a, 2, "db.test:0"), -ERANGE);
    ck_assert_uint_eq(names_asked(), 0);
}

static const struct {
    const char *line;
    bool dns, files;
} lines[] = {
    {" files dns\n", true, true},
    {"dns", true, false},
    {"\tDNS\t# files", true, false},
    {"files dns myhostname", false, true},
    {"files mdns4_minimal [NOTFOUND=return] dns", false, true},
    {"resolve [!UNAVAIL=return] dns", false, false},
    {"dns files", false, false},
    {"files", false, true},
    {"", false, false},
};

TEST_EACH(resolve, dns_is_asked_where_no_other_source_is_named, ARRAY_LEN(lines))
{
    bool files;

    ck_assert_int_eq(name_service_is_dns_line(lines[_i].line, &files), lines[_i].dns);
    ck_assert_int_eq(files, lines[_i].files);
}
