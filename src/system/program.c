#include "system/program.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static char *program_join(const char *directory, size_t len, const char *name)
{
    char *path;

    if (asprintf(&path, "%.*s%s%s", (int)len, directory, len > 0 ? "/" : "", name) < 0)
        return NULL;
    return path;
}

static int program_search(char **out, const char *name)
{
    const char *list = getenv("PATH");

    while (list) {
        size_t len = strcspn(list, ":");
        char *path = program_join(list, len, name);

        if (!path)
            return -ENOMEM;
        if (access(path, X_OK) == 0) {
            *out = path;
            return 0;
        }
        free(path);
        list = list[len] == ':' ? list + len + 1 : NULL;
    }
    return -ENOENT;
}

/* Ask the kernel for the path: the shell would not find argv[0]. */
static int program_ask_kernel(char **out)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    const char *executed = (const char *)getauxval(AT_EXECFN); /* without /proc */

    if (len < 0 && !executed)
        return -ENOENT;
    path[len < 0 ? 0 : len] = '\0';
    *out = strdup(len < 0 ? executed : path);
    return *out ? 0 : -ENOMEM;
}

static int program_make_absolute(char **path)
{
    char directory[PATH_MAX], *absolute;

    if (**path == '/')
        return 0;
    if (!getcwd(directory, sizeof(directory)))
        return -errno;
    absolute = program_join(directory, strlen(directory), *path);
    if (!absolute)
        return -ENOMEM;
    free(*path);
    *path = absolute;
    return 0;
}

int program_open(struct program *p, char **argv)
{
    const char *name = argv[0] ? argv[0] : "";
    int rc = -ENOENT;

    *p = (struct program){.argv = argv};
    MUST(sigprocmask(SIG_SETMASK, NULL, &p->mask) == 0);
    if (strchr(name, '/')) {
        p->path = strdup(name);
        rc = p->path ? 0 : -ENOMEM;
    } else if (*name) {
        rc = program_search(&p->path, name);
    }
    if (rc == -ENOENT)
        rc = program_ask_kernel(&p->path);
    if (rc == 0)
        rc = program_make_absolute(&p->path);
    if (rc < 0)
        program_close(p);
    return rc;
}

void program_close(struct program *p)
{
    free(p->path);
    p->path = NULL;
}
