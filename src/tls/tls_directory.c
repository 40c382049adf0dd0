#include "tls/tls_directory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool tls_directory_is(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool tls_directory_names_certificate(const char *name)
{
    static const char *const ends[] = {".pem", ".crt", ".cer", ".rsa", ".ecdsa"};
    const char *end = strrchr(name, '.');

    for (unsigned i = 0; end && i < ARRAY_LEN(ends); i++)
        if (strcmp(end, ends[i]) == 0)
            return true;
    return false;
}

static int tls_directory_select(const struct dirent *entry)
{
    const char *name = entry->d_name;

    return name[0] != '.' && (tls_directory_names_certificate(name) || entry->d_type == DT_DIR ||
                              entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN);
}

static int tls_directory_by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static char *tls_directory_join(const char *path, const char *name)
{
    char *joined;

    return asprintf(&joined, "%s/%s", path, name) < 0 ? NULL : joined;
}

static int tls_directory_add_pair(struct tls_directory *d, const char *path, struct tls_load *l)
{
    struct tls_directory_entry *e = &d->list[d->n];

    tls_load_note(l, path);
    e->certificate = tls_directory_join(path, "fullchain.pem");
    e->key = tls_directory_join(path, "privkey.pem");
    if (!e->certificate || !e->key)
        return -ENOMEM;
    if (access(e->certificate, F_OK) == 0 && access(e->key, F_OK) == 0) {
        d->n++;
        return 0;
    }
    free(e->certificate);
    free(e->key);
    *e = (struct tls_directory_entry){NULL, NULL};
    return 0;
}

static int tls_directory_add(struct tls_directory *d, const char *directory, const char *name,
                             struct tls_load *l)
{
    char *path = tls_directory_join(directory, name);
    int rc = 0;

    if (!path)
        return -ENOMEM;
    if (tls_directory_is(path)) {
        rc = tls_directory_add_pair(d, path, l);
    } else if (tls_directory_names_certificate(name)) {
        d->list[d->n++].certificate = path;
        path = NULL;
    }
    free(path);
    return rc;
}

int tls_directory_list(struct tls_directory *out, const char *path, struct tls_load *l)
{
    struct dirent **names;
    int rc = 0;
    int n;

    tls_load_note(l, path);
    n = scandir(path, &names, tls_directory_select, tls_directory_by_name);
    *out = (struct tls_directory){.n = 0};
    if (n < 0)
        return tls_load_refuse(l, "%s: cannot be read: %s", path, strerror(errno));
    out->list = calloc((size_t)n + 1, sizeof(*out->list));
    if (!out->list)
        rc = -ENOMEM;
    for (int i = 0; i < n; i++) {
        if (rc == 0)
            rc = tls_directory_add(out, path, names[i]->d_name, l);
        free(names[i]);
    }
    free(names);
    if (rc == 0 && out->n > 0)
        return 0;
    tls_directory_free(out);
    if (rc < 0)
        return tls_load_memory(l);
    return tls_load_refuse(l, "%s: there is no certificate (files NAME.pem or NAME.crt)", path);
}

void tls_directory_free(struct tls_directory *d)
{
    for (unsigned i = 0; d->list && i <= d->n; i++) { /* after an error entry n is half filled */
        free(d->list[i].certificate);
        free(d->list[i].key);
    }
    free(d->list);
    *d = (struct tls_directory){.n = 0};
}
