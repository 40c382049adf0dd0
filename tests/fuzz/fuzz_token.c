/*
 * Fuzz the file of a token, which the daemon and reactorctl read on their own: a token that the
 * daemon takes reactorctl takes as the same.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/must.h"
#include "config/config.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_reports;

/* In place of the one that writes on stderr. */
void ctl_report(const char *format, ...)
{
    (void)format;
    n_reports++;
}

static int file_of(char path[64], const void *bytes, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && fchmod(fd, 0600) == 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

/* The configuration whose token is in the file ${path}; NULL: it is refused. */
static struct config *load(const char *path)
{
    char text[256], config_path[64], *problems;
    size_t len;
    FILE *out = open_memstream(&problems, &len);
    struct config *config = NULL;
    int fd, rc;

    snprintf(text, sizeof(text),
             "[admin]\naddress = 127.0.0.1:1\ntoken_file = %s\n"
             "[listen echo]\naddress = @echo\nservice = echo\n",
             path);
    fd = file_of(config_path, text, strlen(text));
    MUST(out != NULL);
    rc = config_load(&config, config_path, out);
    MUST(fclose(out) == 0);
    MUST(rc == 0 || strstr(problems, "token_file") != NULL);
    free(problems);
    close(fd);
    return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], *token = NULL;
    int fd = file_of(path, data, size), rc;
    struct config *config = load(path);

    n_reports = 0;
    rc = ctl_token_read(&token, path);
    MUST((rc == 0) == (n_reports == 0));
    for (const char *at = token; at && *at != '\0'; at++)
        MUST(isgraph((unsigned char)*at));
    if (config)
        MUST(rc == 0 && strcmp(token, config->admin.token) == 0);
    config_free(config);
    free(token);
    close(fd);
    return 0;
}
