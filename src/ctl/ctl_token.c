#include "ctl/ctl_token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl_memory.h"
#include "ctl/ctl_report.h"

#define MAX_BYTES 4096
#define BLANKS    " \t\r\n\v\f" /* behind the token, as config/config_admin */

/* Accept only characters that may be in a header field, but no blanks. */
static int ctl_token_check(const char *token, size_t len, const char *path)
{
    if (len == 0 || len == MAX_BYTES) {
        ctl_report("%s: %s", path, len == 0 ? "no token in it" : "too long for a token");
        return -EINVAL;
    }
    for (size_t i = 0; i < len; i++)
        if (token[i] <= ' ' || token[i] > '~') {
            ctl_report("%s: the token is not one word of printable ASCII", path);
            return -EINVAL;
        }
    return 0;
}

int ctl_token_read(char **out, const char *path)
{
    char text[MAX_BYTES + 1];
    FILE *file = fopen(path, "re");
    size_t len;
    int rc;

    if (!file) {
        rc = -errno;
        ctl_report("%s: %s", path, strerror(-rc));
        return rc;
    }
    len = fread(text, 1, MAX_BYTES, file);
    rc = ferror(file) ? -EIO : 0;
    fclose(file);
    if (rc < 0) {
        ctl_report("%s: cannot be read", path);
        return rc;
    }
    while (len > 0 && memchr(BLANKS, text[len - 1], strlen(BLANKS)))
        len--;
    rc = ctl_token_check(text, len, path);
    if (rc == 0)
        *out = ctl_memory_need(strndup(text, len));
    return rc;
}
