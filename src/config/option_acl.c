#include "config/option_acl.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "config/acl_parser.h"
#include "config/diagnostics.h"
#include "config/option_kind.h"
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

const struct option_kind option_access_list = {option_acl_set_list, "", 0};
const struct option_kind option_access_file = {option_acl_set_file, "", 0};
