/*
 * limits/acl: allow and deny rules of a listener.
 *
 * The first rule that contains the client's address decides. If no rule does, deny_others decides.
 */
#ifndef LIMITS_ACL_H
#define LIMITS_ACL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

struct acl;
struct address;
struct cidr;

struct acl_conf {
    const struct cidr *blocks;
    const bool *allow;
    size_t n;
    bool deny_others; /* if no rule matches */
};

/*
 * acl_create(out, conf):
 * Compile ${conf}. ${out} is NULL if it allows all clients.
 *
 * Owns:   the arrays of ${conf} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int acl_create(struct acl **out, const struct acl_conf *conf) NODISCARD;

/*
 * acl_allows(a, listener, client):
 * Is ${client} allowed? Log denials at info level, at most one a second. NULL ${a}: allow all.
 */
bool acl_allows(struct acl *a, const char *listener, const struct address *client);

/* acl_destroy(a): free ${a} or NULL. Thread: any, after the last acl_allows() */
void acl_destroy(struct acl *a);

#endif
