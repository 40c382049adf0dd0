/* balance/server_tls: the name that the certificate of a server is verified for. */
#include "balance/server_tls.h"

#include "support/suite.h"

static const struct {
    const char *tls_name, *address_text, *name;
} cases[] = {
    {NULL, "db.example:5432", "db.example"},
    {NULL, "localhost:1", "localhost"},
    {NULL, "192.0.2.1:443", "192.0.2.1"},
    {NULL, "[2001:db8::1]:443", "2001:db8::1"},
    {NULL, "[fe80::1%eth0]:443", "fe80::1"},
    {NULL, "_ldap._tcp.a.example", "a.example"},
    {NULL, "db.example.:5432", "db.example"},
    {NULL, "_ldap._tcp.a.example.", "a.example"},
    {NULL, "/run/x.sock", NULL},
    {NULL, "/run/x:1", NULL},
    {NULL, "@x:1", NULL},
    {"b.example", "db.example:5432", "b.example"},
    {"b.example", "_ldap._tcp.a.example", "b.example"},
    {"b.example", "/run/x.sock", "b.example"},
};

GROUP(names, NULL, NULL);

TEST_EACH(names, a_server_is_verified_for_tls_name_or_for_its_own_host, ARRAY_LEN(cases))
{
    const struct upstream_tls_conf conf = {.server_name = cases[_i].tls_name};
    char room[SERVER_NAME_BYTES];
    const char *name = server_tls_name(room, &conf, cases[_i].address_text);

    if (cases[_i].name)
        ck_assert_str_eq(name, cases[_i].name);
    else
        ck_assert_ptr_null(name);
}
