#include "net/name_service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\n"

/* Return the next word of *${text}, up to blanks or a comment; NULL: none. */
static const char *name_service_next_word(const char **text, size_t *len)
{
    const char *word = *text + strspn(*text, BLANKS);

    *len = strcspn(word, BLANKS "#");
    *text = word + *len;
    return *len > 0 ? word : NULL;
}

static bool name_service_is_word(const char *word, size_t len, const char *other)
{
    return strlen(other) == len && strncasecmp(word, other, len) == 0;
}

bool name_service_is_dns_line(const char *line, bool *files)
{
    size_t len;
    const char *word;
    bool dns = false;

    *files = false;
    while ((word = name_service_next_word(&line, &len))) {
        if (!dns && name_service_is_word(word, len, "files"))
            *files = true;
        else if (!dns && name_service_is_word(word, len, "dns"))
            dns = true;
        else
            return false; /* another source, or an action such as [NOTFOUND=return] */
    }
    return dns;
}

/*
 * Return the sources of `hosts:`, or libc's default; the caller frees the text. NULL: out of
 * memory.
 */
static char *name_service_read_sources(void)
{
    FILE *f = fopen("/etc/nsswitch.conf", "re");
    char *line = NULL, *found = NULL;
    size_t size = 0;

    while (f && !found && getline(&line, &size, f) >= 0) {
        const char *text = line + strspn(line, BLANKS);

        if (strncasecmp(text, "hosts", 5) == 0) {
            text += 5 + strspn(text + 5, BLANKS);
            found = *text == ':' ? strdup(text + 1) : NULL;
        }
    }
    free(line);
    if (f)
        (void)fclose(f);
    return found ? found : strdup("files dns");
}

/* Does ${line}, an address and its names, name ${host}? */
static bool name_service_line_has(const char *line, const char *host)
{
    size_t len, host_len = strlen(host);
    const char *word;

    if (host_len > 0 && host[host_len - 1] == '.')
        host_len--;
    if (!name_service_next_word(&line, &len))
        return false;
    while ((word = name_service_next_word(&line, &len)))
        if (len == host_len && strncasecmp(word, host, len) == 0)
            return true;
    return false;
}

static bool name_service_hosts_has(const char *host)
{
    FILE *f = fopen("/etc/hosts", "re");
    char *line = NULL;
    size_t size = 0;
    bool has = false;

    while (f && !has && getline(&line, &size, f) >= 0)
        has = name_service_line_has(line, host);
    free(line);
    if (f)
        (void)fclose(f);
    return has;
}

bool name_service_is_dns(const char *host)
{
    char *sources = name_service_read_sources();
    bool files, is_dns = sources && name_service_is_dns_line(sources, &files);

    free(sources);
    return is_dns && !(files && name_service_hosts_has(host));
}
