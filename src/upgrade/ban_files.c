#include "upgrade/ban_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "upgrade/hand_over.h"
#include "upgrade/successor.h"
#include "handover/server_bans_state.h"

static int ban_files_write(struct server *sv, int64_t since_ns)
{
    unsigned n = 0;
    FILE *f;
    int fd, rc = hand_over_create_state(&fd, &f);

    if (rc == 0) {
        n = server_bans_state_write(sv, f, since_ns, SERVER_BANS_STATE_MAX);
        rc = hand_over_finish_state(fd, f);
    }
    if (rc < 0) {
        log_warning("upgrade: bans are lost: %s", strerror(-rc));
        return -1;
    }
    if (n > 0)
        return fd;
    close(fd);
    return -1;
}

int ban_files_lend(struct server *sv)
{
    return ban_files_write(sv, 0);
}

void ban_files_send(struct server *sv, struct successor *s, int64_t since_ns)
{
    int fd = ban_files_write(sv, since_ns);

    if (fd < 0)
        return;
    successor_report(s, "bans", fd);
    close(fd);
}

void ban_files_use(struct server *sv, int fd)
{
    int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    FILE *f = copy >= 0 ? fdopen(copy, "r") : NULL;

    if (f) {
        rewind(f);
        server_bans_state_use(sv, f);
        fclose(f);
        return;
    }
    if (fd >= 0)
        log_warning("upgrade: bans are lost: %s", strerror(errno));
    if (copy >= 0)
        close(copy);
}
