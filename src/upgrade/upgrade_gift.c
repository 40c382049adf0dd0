#include "upgrade/upgrade_gift.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/text_stream.h"
#include "config/config_edits.h"
#include "upgrade/ban_files.h"
#include "upgrade/hand_over.h"
#include "system/launch.h"
#include "system/pid_file.h"
#include "upgrade/predecessors.h"
#include "reload/reload.h"
#include "upgrade/ticket_keys.h"
#include "upgrade/upgrade_conf.h"
#include "handover/server_settings.h"
#include "handover/server_state.h"
#include "handover/server_upgrade.h"
#include "listen/listeners.h"

int upgrade_gift_write_state(const struct upgrade_conf *conf, bool settings, int *out_fd)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    int rc;

    if (!f)
        return -ENOMEM;
    server_state_write(conf->server, f);
    if (settings)
        config_edits_write(reload_running(conf->reload), f);
    if (settings)
        server_settings_write(conf->server, f);
    if (settings)
        server_state_write_names(conf->server, f);
    rc = text_stream_close(f, &text);
    if (rc == 0)
        rc = hand_over_write_state(out_fd, text, len);
    free(text);
    return rc;
}

void upgrade_gift_close(struct upgrade_gift *g)
{
    if (g->state_fd >= 0)
        close(g->state_fd);
    if (g->tickets_fd >= 0)
        close(g->tickets_fd);
    if (g->bans_fd >= 0)
        close(g->bans_fd);
    free(g->sockets);
    free(g->names);
    free(g->list);
}

static void upgrade_gift_add(struct upgrade_gift *g, int fd, const char *name)
{
    g->list[g->n++] = (struct launch_descriptor){.fd = fd, .name = name};
}

static int upgrade_gift_list_sockets(struct upgrade_gift *g, const struct upgrade_conf *conf)
{
    struct listeners_descriptor *larger;
    const struct address *address;
    unsigned n_admin = 0;
    int rc = server_upgrade_descriptors(conf->server, &g->sockets, &g->n_sockets);

    while (admin_descriptor(conf->admin, n_admin, &address) >= 0)
        n_admin++;
    if (rc < 0 || n_admin == 0)
        return rc;
    larger = realloc(g->sockets, (g->n_sockets + n_admin) * sizeof(*larger));
    if (!larger)
        return -ENOMEM;
    g->sockets = larger;
    for (unsigned i = 0; i < n_admin; i++) {
        int fd = admin_descriptor(conf->admin, i, &address);

        g->sockets[g->n_sockets++] = (struct listeners_descriptor){.fd = fd, .address = *address};
    }
    return 0;
}

/* Collect all descriptors; the last is a placeholder for the hand-over socket. */
int upgrade_gift_open(struct upgrade_gift *g, const struct upgrade_conf *conf)
{
    struct predecessors *old = conf->predecessors;
    unsigned n_old = PREDECESSORS_DESCRIPTORS * predecessors_draining(old);
    int pid_file = pid_file_descriptor(conf->pid_file), rc;

    *g = (struct upgrade_gift){.state_fd = -1, .tickets_fd = -1, .bans_fd = -1};
    rc = upgrade_gift_list_sockets(g, conf);
    if (rc == 0)
        rc = upgrade_gift_write_state(conf, true, &g->state_fd);
    if (rc == 0)
        rc = ticket_keys_lend(&g->tickets_fd);
    if (rc < 0)
        return rc;
    g->list = calloc(g->n_sockets + n_old + 5, sizeof(*g->list));
    g->names = calloc(g->n_sockets + 1, sizeof(*g->names));
    if (!g->list || !g->names)
        return -ENOMEM;
    for (unsigned i = 0; i < g->n_sockets; i++) {
        fd_store_hand_over_name(conf->sockets, &g->sockets[i].address, g->names[i]);
        upgrade_gift_add(g, g->sockets[i].fd, g->names[i]);
    }
    if (pid_file >= 0)
        upgrade_gift_add(g, pid_file, HAND_OVER_PID_FILE);
    rc = predecessors_lend(old, &g->list[g->n]);
    if (rc < 0)
        return rc;
    g->n += n_old;
    if (g->tickets_fd >= 0)
        upgrade_gift_add(g, g->tickets_fd, HAND_OVER_TICKETS);
    g->bans_fd = ban_files_lend(conf->server);
    if (g->bans_fd >= 0)
        upgrade_gift_add(g, g->bans_fd, HAND_OVER_BANS);
    upgrade_gift_add(g, g->state_fd, HAND_OVER_STATE);
    upgrade_gift_add(g, -1, HAND_OVER_NAME);
    return 0;
}
