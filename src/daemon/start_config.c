#include "daemon/start_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text_stream.h"
#include "config/config.h"
#include "upgrade/predecessors.h"
#include "system/privileges.h"

int start_config_load(struct config **out, const char *path, struct predecessors *p)
{
    char *errors = NULL;
    size_t len;
    FILE *f = open_memstream(&errors, &len);
    int rc = f ? config_load(out, path, f) : -ENOMEM;

    if (rc == -ENOMEM) /* config_load() itself reports all other errors */
        fprintf(f ? f : stderr, "reactord: %s: %s\n", path, strerror(ENOMEM));
    if (f && text_stream_close(f, &errors) == 0) {
        fputs(errors, stderr);
        if (p)
            predecessors_tell_lines(p, errors);
    }
    free(errors);
    return rc;
}

/* Check for what must be in the root directory: without it, a later step would fail. */
static int start_config_check_root(const char *root)
{
    const char *manager = getenv("NOTIFY_SOCKET");

    if (manager && *manager == '/' && access(manager, F_OK) < 0) {
        log_error("chroot %s: the socket of systemd, %s, is not there: set RootDirectory= of the "
                  "unit instead",
                  root, manager);
        return -ENOENT;
    }
    return 0;
}

int start_config_enter(const struct config *config, const char *path, struct privileges *user)
{
    const char *root = config->process.chroot;
    int rc;

    if (*path != '/') {
        log_error(
            "chroot %s: the path %s of -c must be absolute, because reloads read it inside the root "
            "directory",
            root, path);
        return -EINVAL;
    }
    if (geteuid() != 0) {
        log_error("chroot %s: only root can change the root directory", root);
        return -EPERM;
    }
    rc = privileges_keep_groups(user);
    if (rc == 0 && (chroot(root) < 0 || chdir("/") < 0)) {
        rc = -errno;
        log_error("chroot %s: %s", root, strerror(-rc));
    }
    return rc < 0 ? rc : start_config_check_root(root);
}

static bool start_config_differs(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) != 0 : a != b;
}

int start_config_replace(struct config **config, const char *path, struct predecessors *p)
{
    const struct process_conf *now = &(*config)->process, *then;
    struct config *again = NULL;
    int rc = start_config_load(&again, path, p);

    if (rc < 0) {
        log_error("chroot %s: %s cannot be used there", now->chroot, path);
        return rc;
    }
    then = &again->process;
    if (start_config_differs(now->chroot, then->chroot) ||
        start_config_differs(now->user, then->user) ||
        start_config_differs(now->group, then->group)) {
        log_error("chroot %s: the file %s below it sets another chroot, user or group", now->chroot,
                  path);
        config_free(again);
        return -EINVAL;
    }
    log_info("root directory: %s", now->chroot);
    config_free(*config);
    *config = again;
    return 0;
}
