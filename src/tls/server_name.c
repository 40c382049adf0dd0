#include "tls/server_name.h"

#include <errno.h>
#include <string.h>

#define SERVER_NAME_LABEL_BYTES 63

/* Return ${c} in lower case, whatever the locale; NUL: not allowed in a label. */
static char server_name_character(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ? c : '\0';
}

int server_name_read(char *out, const char *name, size_t len)
{
    size_t label = 0;

    if (len > 0 && name[len - 1] == '.')
        len--;
    if (len == 0 || len >= SERVER_NAME_BYTES)
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        bool is_dot = name[i] == '.';
        char c = is_dot ? '.' : server_name_character(name[i]);

        if (!c || (is_dot && label == 0) || (!is_dot && ++label > SERVER_NAME_LABEL_BYTES))
            return -EINVAL;
        if (is_dot)
            label = 0;
        out[i] = c;
    }
    out[len] = '\0';
    return label > 0 ? 0 : -EINVAL;
}

int server_name_read_pattern(char *out, const char *pattern, size_t len)
{
    if (len < 2 || pattern[0] != '*' || pattern[1] != '.')
        return server_name_read(out, pattern, len);
    if (len >= SERVER_NAME_BYTES || server_name_read(out + 2, pattern + 2, len - 2) < 0)
        return -EINVAL;
    memcpy(out, "*.", 2);
    return 0;
}

bool server_name_matches(const char *pattern, const char *name)
{
    const char *dot;

    if (!server_name_is_wildcard(pattern))
        return strcmp(pattern, name) == 0;
    dot = strchr(name, '.');
    return dot && strcmp(pattern + 1, dot) == 0;
}
