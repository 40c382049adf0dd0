/*
 * Fuzz config/config: any file is refused with a reason or taken, what is taken is written so that
 * it is taken again, and iniparser reads what our scanner reads.
 */
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/must.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In place of the C library's: whatever a file says, reading it asks no name server. */
int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict res)
{
    (void)node;
    (void)service;
    (void)hints;
    (void)res;
    MUST(!"asked a name service");
    return EAI_FAIL;
}

/*
 * Is ${line} about iniparser and the scanner having read different things? What it quotes of the
 * input may say anything, so only where a problem's own words stand counts: behind `path:line: `
 * and perhaps `[section] key: `.
 */
static bool disagrees(const char *line)
{
    const char *text = strstr(line, ": ");

    if (text != NULL && text[2] == '[')
        text = strstr(text + 2, ": ");
    return text != NULL && strncmp(text + 2, "iniparser ", 10) == 0;
}

static void check_agreement(const char *problems)
{
    for (const char *line = problems; *line != '\0'; line = strchr(line, '\n') + 1)
        MUST(!disagrees(line));
}

/*
 * Are there only warnings? A problem's own words begin with the section, or quote what may say
 * anything.
 */
static bool is_valid(const char *problems)
{
    for (const char *line = problems; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *text = strstr(line, ": ");

        if (text == NULL || strncmp(text + 2, "warning: ", 9) != 0)
            return false;
    }
    return true;
}

/* Load ${bytes} as a file; *problems is to be freed. */
static struct config *load(const void *bytes, size_t size, char **problems)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[64];
    size_t len;
    FILE *out = open_memstream(problems, &len);
    struct config *config;
    int rc;

    MUST(fd >= 0 && out != NULL);
    MUST(write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    rc = config_load(&config, path, out);
    MUST(fclose(out) == 0);
    close(fd);
    MUST((rc == 0) == (config != NULL));
    MUST((rc == 0) == is_valid(*problems));
    check_agreement(*problems);
    return config;
}

static void dump(const struct config *config, bool origins, char **text, size_t *len)
{
    FILE *out = open_memstream(text, len);

    MUST(out != NULL);
    MUST((origins ? config_dump_origins(config, out) : config_dump(config, out)) == 0);
    MUST(fclose(out) == 0);
}

/* The dump of ${config}, also with comments on the origins, gives the same dump. */
static void dump_and_load(const struct config *config, bool origins)
{
    char *first, *written, *second, *problems;
    size_t first_len, written_len, second_len;
    struct config *again;

    dump(config, false, &first, &first_len);
    dump(config, origins, &written, &written_len);
    again = load(written, written_len, &problems);
    MUST(again != NULL);
    dump(again, false, &second, &second_len);
    MUST(first_len == second_len && memcmp(first, second, first_len) == 0);
    config_free(again);
    free(problems);
    free(second);
    free(written);
    free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *problems;
    struct config *config = load(data, size, &problems);

    if (config != NULL) {
        dump_and_load(config, false);
        dump_and_load(config, true);
    }
    config_free(config);
    free(problems);
    return 0;
}
