#include "upgrade/ticket_keys.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "upgrade/hand_over.h"
#include "tls/tls_tickets.h"

int ticket_keys_lend(int *out_fd)
{
    uint8_t keys[TLS_TICKETS_OWN_BYTES];
    size_t len = tls_tickets_export_own(keys);
    int rc = 0;

    *out_fd = -1;
    if (len > 0)
        rc = hand_over_write_state(out_fd, (const char *)keys, len);
    explicit_bzero(keys, sizeof(keys));
    return rc;
}

static void ticket_keys_take_file(int fd)
{
    uint8_t keys[TLS_TICKETS_OWN_BYTES];
    ssize_t n = pread(fd, keys, sizeof(keys), 0);
    int rc = n < 0 ? -errno : tls_tickets_import_own(keys, (size_t)n);

    if (rc == 0 && ftruncate(fd, 0) < 0)
        rc = -errno;
    if (rc < 0)
        log_warning("upgrade: keys of TLS tickets: %s; clients make full handshakes once",
                    strerror(-rc));
    explicit_bzero(keys, sizeof(keys));
    close(fd);
}

void ticket_keys_take(void)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(0, &names);

    for (int i = 0; i < n; i++) {
        if (strcmp(names[i], HAND_OVER_TICKETS) == 0)
            ticket_keys_take_file(SD_LISTEN_FDS_START + i);
        free(names[i]);
    }
    free(names);
}
