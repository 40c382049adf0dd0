#include "option/option_acl.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "option/acl_parser.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"
#include "limits/acl.h"
#include "net/cidr.h"

_Static_assert(ACL_PARSER_PROBLEM_BYTES <= OPTION_PROBLEM_BYTES, "problems are handed on");

static int option_acl_check_path(struct option_value *v, const char *path)
{
    size_t len = strlen(path);

    if (path[0] != '/' || path[len - 1] == '/')
        return option_refuse(v, "%s is not the absolute path of a file", QUOTE_TEXT(path));
    return 0;
}

static int option_acl_check_item(struct option_value *v, const char *item)
{
    struct cidr unused[ACL_PARSER_BLOCKS];

    if (*item == '\0')
        return option_refuse(v, "a block of addresses is missing beside a comma");
    if (strncmp(item, ACL_PARSER_FILE, strlen(ACL_PARSER_FILE)) == 0)
        return option_acl_check_path(v, item + strlen(ACL_PARSER_FILE));
    return acl_parser_parse(unused, item, v->problem) < 0 ? -EINVAL : 0;
}

static int option_acl_set_list(const struct option *o, struct option_value *v)
{
    char *list = arena_text(v->arena, v->text, strlen(v->text));
    int rc = 0;

    (void)o;
    if (!list)
        return -ENOMEM;
    while (rc == 0 && list)
        rc = option_acl_check_item(v, option_kind_next_item(&list));
    return rc;
}

static int option_acl_set_file(const struct option *o, struct option_value *v)
{
    (void)o;
    return option_acl_check_path(v, v->text);
}

/* ---- comparing rules ---- */

/* Which rules an option has. */
struct option_acl_content {
    struct option_content content;
    bool all, allow;
};

/* Iterator over the rules of one option. */
struct rules {
    const struct acl_conf *conf;
    const struct option_acl_content *of;
    size_t at;
};

static struct rules option_acl_rules(const struct option *o, const void *conf)
{
    const void *access = (const char *)conf + o->offset;

    return (struct rules){
        .conf = access,
        .of = CONTAINER_OF(o->kind->content, const struct option_acl_content, content)};
}

static bool option_acl_next_rule(struct rules *r)
{
    while (r->at < r->conf->n && !r->of->all && r->conf->allow[r->at] != r->of->allow)
        r->at++;
    return r->at < r->conf->n;
}

static size_t option_acl_count(const struct option *o, const void *conf)
{
    struct rules r = option_acl_rules(o, conf);
    size_t n = 0;

    for (; option_acl_next_rule(&r); r.at++)
        n++;
    return n;
}

static bool option_acl_same_rule(const struct rules *a, const struct rules *b)
{
    const struct cidr *x = &a->conf->blocks[a->at], *y = &b->conf->blocks[b->at];

    return a->conf->allow[a->at] == b->conf->allow[b->at] && x->len == y->len &&
           x->bits == y->bits && memcmp(x->host, y->host, sizeof(x->host)) == 0;
}

static bool option_acl_same(const struct option *o, const void *from, const void *to)
{
    struct rules a = option_acl_rules(o, from), b = option_acl_rules(o, to);

    for (; option_acl_next_rule(&a) && option_acl_next_rule(&b); a.at++, b.at++)
        if (!option_acl_same_rule(&a, &b))
            return false;
    return !option_acl_next_rule(&a) && !option_acl_next_rule(&b);
}

#define CONTENT(all, allow)                                   \
    {                                                         \
        {option_acl_same, option_acl_count, NULL}, all, allow \
    }

static const struct option_acl_content denied = CONTENT(false, false);
static const struct option_acl_content allowed = CONTENT(false, true);
static const struct option_acl_content every = CONTENT(true, false);

const struct option_kind option_access_deny = {option_acl_set_list, "", 0, &denied.content};
const struct option_kind option_access_allow = {option_acl_set_list, "", 0, &allowed.content};
const struct option_kind option_access_file = {option_acl_set_file, "", 0, &every.content};
