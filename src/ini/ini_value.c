#include "ini/ini_value.h"

#include <stdbool.h>
#include <string.h>

#define BLANKS  " \t"
#define COMMENT "#;"

char *ini_value_strip(char *text)
{
    size_t len;

    text += strspn(text, BLANKS);
    for (len = strlen(text); len > 0 && strchr(BLANKS, text[len - 1]); len--)
        ;
    text[len] = '\0';
    return text;
}

static const char *ini_value_quoted(char *value, const char **out)
{
    char *end = strchr(value + 1, *value);
    const char *rest;

    if (!end)
        return "the closing quote is missing";
    rest = end + 1 + strspn(end + 1, BLANKS);
    if (*rest != '\0' && !strchr(COMMENT, *rest))
        return "text follows the closing quote (only a comment may)";
    *end = '\0';
    *out = value + 1;
    return NULL;
}

/* A text in double quotes may follow a colon, as in first:"SSH-". */
static bool ini_value_has_stray_quote(const char *value)
{
    for (const char *at = value; (at = strpbrk(at, "\"'"));) {
        bool opens = at > value && at[-1] == ':' && *at == '"';
        const char *end = opens ? strchr(at + 1, '"') : NULL;

        if (!end || (end[1] != '\0' && !strchr(BLANKS, end[1])))
            return true;
        at = end + 1;
    }
    return false;
}

static const char *ini_value_plain(char *value, const char **out)
{
    char *hash = strpbrk(value, COMMENT);

    if (hash && hash != value && !strchr(BLANKS, hash[-1]))
        return "a '#' or ';' inside the value (put a blank before a comment, or quote the value)";
    if (hash)
        *hash = '\0';
    if (ini_value_has_stray_quote(value))
        return "a quote inside the value (put all of the value in quotes of the other kind)";
    *out = ini_value_strip(value);
    return NULL;
}

const char *ini_value_read(const char **out, char *text)
{
    text += strspn(text, BLANKS);
    return *text == '"' || *text == '\'' ? ini_value_quoted(text, out) : ini_value_plain(text, out);
}
