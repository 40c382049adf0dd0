#include "option/option_unix.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "ini/diagnostics.h"
#include "net/sock.h"

/* (uid_t)-1 means "keep" to chown(2). */
#define ID_MAX (UINT32_MAX - 1)

static int option_unix_set_mode(const struct option *o, struct option_value *v)
{
    struct sock_file *file = option_field(o, v);
    size_t len = strlen(v->text);

    if (strspn(v->text, "01234567") != len || len < 3 || len > 4)
        return option_refuse(v, "%s is not a mode of three octal digits", QUOTE_TEXT(v->text));
    if (len == 4 && v->text[0] != '0')
        return option_refuse(v, "%s has bits other than permissions", QUOTE_TEXT(v->text));
    file->mode = (mode_t)strtoul(v->text, NULL, 8);
    file->set_mode = true;
    return 0;
}

static int option_unix_set_user(const struct option *o, struct option_value *v)
{
    struct sock_file *file = option_field(o, v);
    const struct passwd *entry = getpwnam(v->text);
    uint64_t number;

    if (entry)
        number = entry->pw_uid;
    else if (parse_uint(&number, v->text, ID_MAX) < 0)
        return option_refuse(v, "there is no user %s", QUOTE_TEXT(v->text));
    file->uid = (uid_t)number;
    file->set_uid = true;
    return 0;
}

static int option_unix_set_group(const struct option *o, struct option_value *v)
{
    struct sock_file *file = option_field(o, v);
    const struct group *entry = getgrnam(v->text);
    uint64_t number;

    if (entry)
        number = entry->gr_gid;
    else if (parse_uint(&number, v->text, ID_MAX) < 0)
        return option_refuse(v, "there is no group %s", QUOTE_TEXT(v->text));
    file->gid = (gid_t)number;
    file->set_gid = true;
    return 0;
}

const struct option_kind option_unix_mode = {option_unix_set_mode, "", 0, NULL};
const struct option_kind option_unix_user = {option_unix_set_user, "", 0, NULL};
const struct option_kind option_unix_group = {option_unix_set_group, "", 0, NULL};
