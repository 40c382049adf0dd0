#include "ini/ini_include.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/read_file.h"
#include "ini/diagnostics.h"
#include "ini/ini_environment.h"
#include "ini/ini_types.h"
#include "ini/ini_value.h"

#define BLANKS " \t"
#define KEY    "include"

struct source {
    const struct source *parent; /* the including file; NULL: this is the main file */
    const char *path;
    dev_t dev; /* dev and ino 0: unknown */
    ino_t ino;
    unsigned depth;
};

struct reader {
    struct diagnostics *diagnostics;
    char *bytes;
    size_t len, capacity;
    unsigned line; /* number of the text's last line */
    unsigned n_files;
    struct ini_include_files files;
};

static int ini_include_add_file(struct reader *r, const char *path, const struct source *parent);

static int ini_include_add_bytes(struct reader *r, const char *bytes, size_t len)
{
    while (r->capacity - r->len < len) {
        size_t capacity = r->capacity > 0 ? 2 * r->capacity : 65536;
        char *larger = realloc(r->bytes, capacity);

        if (!larger)
            return -ENOMEM;
        r->bytes = larger;
        r->capacity = capacity;
    }
    if (len > 0)
        memcpy(r->bytes + r->len, bytes, len);
    r->len += len;
    return 0;
}

static void ini_include_digest(struct reader *r, const void *bytes, size_t len)
{
    r->files.digest = hash_mix(r->files.digest) ^ hash_stable(bytes, len);
}

/* Record a path, with ${end} behind it. */
static int ini_include_add_path(struct reader *r, const char *path, const char *end)
{
    size_t len = strlen(path) + strlen(end) + 1;
    char *larger = realloc(r->files.paths, r->files.len + len);

    if (!larger)
        return -ENOMEM;
    r->files.paths = larger;
    snprintf(larger + r->files.len, len, "%s%s", path, end);
    ini_include_digest(r, larger + r->files.len, len);
    r->files.len += len;
    return 0;
}

static int ini_include_add_line(struct reader *r, const char *bytes, size_t len, bool newline)
{
    int rc = ini_include_add_bytes(r, bytes, len);

    r->line++;
    return rc == 0 && newline ? ini_include_add_bytes(r, "\n", 1) : rc;
}

bool ini_include_takes(const char *name)
{
    size_t len = strlen(name);

    return name[0] != '.' && len > 4 && strcmp(name + len - 4, ".ini") == 0;
}

static int ini_include_select_ini(const struct dirent *entry)
{
    return ini_include_takes(entry->d_name);
}

/* Not by strcoll(3), so that the order does not depend on the locale. */
static int ini_include_compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int ini_include_add_directory(struct reader *r, const char *path,
                                     const struct source *parent)
{
    struct dirent **entries;
    int added = ini_include_add_path(r, path, "/");
    int n = added < 0 ? added
                      : scandir(path, &entries, ini_include_select_ini, ini_include_compare_names);
    int rc = 0;

    if (n < 0) {
        if (added < 0 || errno == ENOMEM)
            return -ENOMEM;
        diagnostics_add(r->diagnostics, r->line, KEY ": %s cannot be read: %s", QUOTE_TEXT(path),
                        strerror(errno));
        return 0;
    }
    for (int i = 0; i < n; i++) {
        char file[PATH_MAX + NAME_MAX + 2];

        snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
        if (rc == 0)
            rc = ini_include_add_file(r, file, parent);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

/* Resolve ${value} relative to ${from}; false: too long. */
static bool ini_include_resolve(char path[PATH_MAX], const char *value, const struct source *from)
{
    const char *slash = strrchr(from->path, '/');
    int dir = value[0] != '/' && slash ? (int)(slash + 1 - from->path) : 0;

    return snprintf(path, PATH_MAX, "%.*s%s", dir, from->path, value) < PATH_MAX;
}

static int ini_include_add_included(struct reader *r, char *text, const struct source *from)
{
    struct ini_environment expanded;
    const char *value, *problem = ini_value_read(&value, text);
    char path[PATH_MAX];
    struct stat st;

    if (!problem && ini_environment_expand(&expanded, value, INI_VALUE_BYTES) < 0)
        problem = expanded.problem;
    if (problem) {
        diagnostics_add(r->diagnostics, r->line, KEY ": %s", problem);
        return 0;
    }
    if (expanded.text[0] == '\0' || !ini_include_resolve(path, expanded.text, from)) {
        diagnostics_add(r->diagnostics, r->line, KEY ": %s is not the path of a file or directory",
                        QUOTE_TEXT(expanded.text));
        return 0;
    }
    if (from->depth == INI_INCLUDE_DEPTH) {
        diagnostics_add(r->diagnostics, r->line,
                        KEY ": files include each other too deeply (at most %d)",
                        INI_INCLUDE_DEPTH);
        return 0;
    }
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return ini_include_add_directory(r, path, from);
    return ini_include_add_file(r, path, from);
}

/* Return VALUE if the line is `include = VALUE`, else NULL. */
static char *ini_include_value_of(char *line)
{
    line += strspn(line, BLANKS);
    if (strncasecmp(line, KEY, strlen(KEY)) != 0)
        return NULL;
    line += strlen(KEY);
    line += strspn(line, BLANKS);
    return *line == '=' ? line + 1 : NULL;
}

/* The next line is line ${path_line} of ${source}. */
static int ini_include_begin(struct reader *r, const struct source *source, unsigned path_line)
{
    return diagnostics_add_source(r->diagnostics,
                                  &(struct diagnostics_source){.line = r->line + 1,
                                                               .path = source->path,
                                                               .path_line = path_line,
                                                               .depth = source->depth});
}

/* Does ${line} begin a section other than [defaults KIND], so that no include may follow? */
static bool ini_include_ends_head(const char *line)
{
    return *line == '[' && strncasecmp(line + 1 + strspn(line + 1, BLANKS), INI_DEFAULTS,
                                       strlen(INI_DEFAULTS)) != 0;
}

static int ini_include_add_text(struct reader *r, const struct file_content *file,
                                const struct source *source)
{
    const char *next = file->bytes, *end = file->bytes + file->len;
    unsigned line = 0;
    bool head = true;
    int rc = ini_include_begin(r, source, 1);

    while (rc == 0 && next < end) {
        const char *newline = memchr(next, '\n', (size_t)(end - next));
        size_t len = (size_t)((newline ? newline : end) - next);
        char copy[INI_LINE_BYTES + 1];
        char *value = NULL;

        line++;
        snprintf(copy, sizeof(copy), "%.*s", (int)(len < INI_LINE_BYTES ? len : INI_LINE_BYTES),
                 next);
        head = head && !ini_include_ends_head(copy + strspn(copy, BLANKS));
        if (head)
            value = ini_include_value_of(copy);
        /* an included file may lack its last newline */
        rc = ini_include_add_line(r, next, value ? 0 : len, newline || source->parent);
        if (rc == 0 && value) {
            if (!newline && !source->parent)
                rc = ini_include_add_bytes(r, "\n", 1);
            if (rc == 0)
                rc = ini_include_add_included(r, value, source);
            if (rc == 0)
                rc = ini_include_begin(r, source, line + 1);
        }
        next += len + (newline != NULL);
    }
    return rc;
}

static bool ini_include_includes_itself(const struct source *file)
{
    for (const struct source *s = file->parent; file->ino != 0 && s; s = s->parent) {
        if (s->dev == file->dev && s->ino == file->ino)
            return true;
    }
    return false;
}

/* Report ${problem} of an included file and return 0; of the main file, return ${rc}. */
static int ini_include_refuse(struct reader *r, const char *path, const struct source *parent,
                              int rc, const char *problem)
{
    if (rc == -ENOMEM)
        return rc;
    if (!parent) {
        diagnostics_add(r->diagnostics, DIAGNOSTICS_WHOLE_FILE, "%s", problem);
        return rc;
    }
    diagnostics_add(r->diagnostics, r->line, KEY ": %s %s", QUOTE_TEXT(path), problem);
    return 0;
}

static int ini_include_add_file(struct reader *r, const char *path, const struct source *parent)
{
    struct source source = {
        .parent = parent, .path = path, .depth = parent ? parent->depth + 1 : 0};
    size_t left = r->len < INI_FILE_BYTES ? INI_FILE_BYTES - r->len : 0;
    struct file_content file;
    struct stat st;
    int rc;

    if (++r->n_files > INI_INCLUDE_FILES)
        return ini_include_refuse(r, path, parent, -EMFILE, "is one file too many");
    rc = ini_include_add_path(r, path, "");
    if (rc < 0)
        return rc;
    rc = read_file(&file, path, left);
    ini_include_digest(r, &rc, sizeof(rc));
    if (rc == -EFBIG && parent)
        snprintf(file.problem, sizeof(file.problem),
                 "is too large (all files together at most %d MiB)", INI_FILE_BYTES >> 20);
    if (rc < 0)
        return ini_include_refuse(r, path, parent, rc, file.problem);
    ini_include_digest(r, &file.len, sizeof(file.len));
    ini_include_digest(r, file.bytes, file.len);
    if (stat(path, &st) == 0) {
        source.dev = st.st_dev;
        source.ino = st.st_ino;
    }
    if (ini_include_includes_itself(&source))
        rc = ini_include_refuse(r, path, parent, -ELOOP, "includes itself");
    else if (parent && ini_scan_is_text(&(struct ini_text){file.bytes, file.len}, NULL) < 0)
        rc = ini_include_refuse(r, path, parent, -EINVAL,
                                "is not a text file with lines that end in LF");
    else
        rc = ini_include_add_text(r, &file, &source);
    free(file.bytes);
    return rc;
}

int ini_include_list(struct ini_include_files *out, const char *path)
{
    struct reader r = {.n_files = 0};
    int rc = diagnostics_create(&r.diagnostics, path);

    if (rc < 0)
        return rc;
    rc = ini_include_add_file(&r, path, NULL);
    diagnostics_destroy(r.diagnostics);
    free(r.bytes);
    if (rc == -ENOMEM) {
        free(r.files.paths);
        return rc;
    }
    *out = r.files;
    return 0;
}

int ini_include_read(struct ini_text *out, uint64_t *digest, const char *path,
                     struct diagnostics *diagnostics)
{
    struct reader r = {.diagnostics = diagnostics};
    int rc = ini_include_add_file(&r, path, NULL);

    free(r.files.paths);
    *digest = r.files.digest;
    if (rc < 0) {
        free(r.bytes);
        return rc;
    }
    *out = (struct ini_text){r.bytes, r.len};
    return 0;
}
