/* support/manager: see manager.h. */
#include "support/manager.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager_fd = -1;

void manager_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];
    int len = snprintf(name, sizeof(name), "@reactord-test-manager-%ld", (long)getpid());

    memcpy(address.sun_path + 1, name + 1, (size_t)len - 1);
    manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager_fd, 0);
    ck_assert_int_eq(bind(manager_fd, (struct sockaddr *)&address,
                          (socklen_t)offsetof(struct sockaddr_un, sun_path) + (socklen_t)len),
                     0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
    manager_watch(NULL, NULL);
}

void manager_close(void)
{
    if (manager_fd >= 0)
        close(manager_fd);
    manager_fd = -1;
}

static void set(const char *name, const char *value)
{
    ck_assert_int_eq(value != NULL ? setenv(name, value, 1) : unsetenv(name), 0);
}

void manager_watch(const char *period_us, const char *pid)
{
    set("WATCHDOG_USEC", period_us);
    set("WATCHDOG_PID", pid);
}

const char *manager_received(void)
{
    static char message[512];
    ssize_t n = recv(manager_fd, message, sizeof(message) - 1, 0);

    message[n > 0 ? n : 0] = '\0';
    return message;
}
