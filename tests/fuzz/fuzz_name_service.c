/*
 * Fuzz net/name_service with nsswitch.conf and hosts: whether a name is queried from DNS directly
 * is what regular expressions say of the same files.
 *
 * The input is nsswitch.conf, hosts and the name, with NUL between them; a file that is left out
 * does not exist. The module opens them by a function of this file: so its source is included here.
 */
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/must.h"

static FILE *open_file(const char *path, const char *mode);

#define fopen                    open_file
#define name_service_is_dns      fuzz_name_service_is_dns
#define name_service_is_dns_line fuzz_name_service_is_dns_line
#include "net/name_service.c"
#undef fopen

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 4096 /* regular expressions are slow */
#define SPACE     "[ \t\r\n]"

static char *nsswitch, *hosts;

static FILE *open_file(const char *path, const char *mode)
{
    char *content = strcmp(path, "/etc/hosts") == 0 ? hosts : nsswitch;

    MUST(strcmp(mode, "re") == 0);
    MUST(content != nsswitch || content == hosts || strcmp(path, "/etc/nsswitch.conf") == 0);
    return content ? fmemopen(content, strlen(content), "r") : NULL;
}

enum pattern { HOSTS_LINE, DNS_ALONE, DNS_FIRST, PATTERNS };

static bool fits(enum pattern pattern, const char *text)
{
    static const char *const patterns[PATTERNS] = {[HOSTS_LINE] = "^" SPACE "*hosts" SPACE "*:",
                                                   [DNS_ALONE] = "^" SPACE "*(files" SPACE
                                                                 "+)*dns" SPACE "*(#.*)?$",
                                                   [DNS_FIRST] = "^" SPACE "*dns"};
    static regex_t compiled[PATTERNS];
    static bool is_compiled[PATTERNS];

    if (!is_compiled[pattern])
        MUST(regcomp(&compiled[pattern], patterns[pattern], REG_EXTENDED | REG_ICASE | REG_NOSUB) ==
             0);
    is_compiled[pattern] = true;
    return regexec(&compiled[pattern], text, 0, NULL, 0) == 0;
}

/* The lines of ${content}, one after the other; NULL at the end. Freed with the next one. */
static char *next_line(const char **content)
{
    static char *line;
    size_t len = strcspn(*content, "\n");

    free(line);
    line = **content == '\0' ? NULL : strndup(*content, len);
    *content += len + ((*content)[len] == '\n');
    return line;
}

/* What is behind `hosts:` on its first line. */
static char *sources_of(const char *content)
{
    const char *line;

    while ((line = next_line(&content)))
        if (fits(HOSTS_LINE, line))
            return strdup(strchr(line, ':') + 1);
    return strdup("files dns");
}

static bool hosts_has(const char *content, const char *name)
{
    size_t len = strlen(name);
    char *line, *word, *rest;

    len -= len > 0 && name[len - 1] == '.';
    while ((line = next_line(&content))) {
        line[strcspn(line, "#")] = '\0';
        if (!strtok_r(line, " \t\r\n", &rest))
            continue;
        while ((word = strtok_r(NULL, " \t\r\n", &rest)))
            if (strlen(word) == len && strncasecmp(word, name, len) == 0)
                return true;
    }
    return false;
}

static bool is_dns(const char *name)
{
    char *sources = sources_of(nsswitch ? nsswitch : "");
    bool has_dns = fits(DNS_ALONE, sources);
    bool has_files = has_dns && !fits(DNS_FIRST, sources);

    free(sources);
    return has_dns && !(has_files && hosts && hosts_has(hosts, name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;
    const char *name = "";

    if (size > INPUT_MAX)
        return 0;
    text = calloc(1, size + 1);
    MUST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    nsswitch = size > 0 ? text : NULL;
    hosts = memchr(text, '\0', size);
    hosts += hosts != NULL;
    if (hosts && memchr(hosts, '\0', size - (size_t)(hosts - text)))
        name = hosts + strlen(hosts) + 1;
    MUST(name_service_is_dns(name) == is_dns(name));
    free(text);
    return 0;
}
