/*
 * Fuzz option/acl_parser and limits/prefix_table: any file is taken or refused with a reason, and
 * what is taken answers as going through its rules does.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "option/acl_parser.h"
#include "ini/diagnostics.h"
#include "limits/prefix_table.h"
#include "net/address.h"
#include "net/cidr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t slowly(const struct acl_parser *t, const struct address *a)
{
    for (size_t i = 0; i < t->n; i++)
        if (cidr_has(&t->blocks[i], a))
            return (uint32_t)i;
    return PREFIX_TABLE_NONE;
}

/* The first and the last host of ${c}. */
static void ask(const struct prefix_table *table, const struct acl_parser *t, const struct cidr *c)
{
    struct address a = {.len = sizeof(a.u.un), .u.sa.sa_family = AF_UNIX};

    for (unsigned last = 0; last < 2; last++) {
        uint8_t host[16];

        memcpy(host, c->host, sizeof(host));
        for (unsigned bit = c->bits; last > 0 && bit < 8U * c->len; bit++)
            host[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
        if (c->len > 0) {
            a.u.sa.sa_family = c->len == 4 ? AF_INET : AF_INET6;
            memcpy(c->len == 4 ? (void *)&a.u.in.sin_addr : (void *)&a.u.in6.sin6_addr, host,
                   c->len);
        }
        MUST(prefix_table_find(table, &a) == slowly(t, &a));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct acl_parser t = {.n = 0};
    struct acl_parser_file file = {
        .path = "/rules", .kind = size > 0 ? data[0] % 3 : ACL_PARSER_BOTH, .line = 1};
    struct prefix_table *table;
    unsigned *dead;

    MUST(diagnostics_create(&file.diagnostics, "t.ini") == 0);
    MUST(acl_parser_lines(&t, &file, (const char *)data, size) == 0);
    MUST(acl_parser_shadowed(&dead, &t) == 0);
    MUST(prefix_table_create(&table, t.blocks, t.n) == 0);
    for (size_t i = 0; i < t.n; i++) {
        MUST(dead[i] <= i && (dead[i] == i || t.allow[dead[i]] != t.allow[i]));
        ask(table, &t, &t.blocks[i]);
    }
    prefix_table_destroy(table);
    free(dead);
    diagnostics_destroy(file.diagnostics);
    acl_parser_free(&t);
    return 0;
}
