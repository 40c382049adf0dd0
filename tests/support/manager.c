/* support/manager: see manager.h. */
#include "support/manager.h"

#include <check.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager_fd = -1;
static struct sockaddr_un address;
static socklen_t address_len;

void manager_open(void)
{
    char name[64];
    int len = snprintf(name, sizeof(name), "@reactord-test-manager-%ld", (long)getpid());

    address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name + 1, (size_t)len - 1);
    address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len);
    manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager_fd, 0);
    ck_assert_int_eq(bind(manager_fd, (struct sockaddr *)&address, address_len), 0);
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

void manager_fill(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ssize_t n;

    ck_assert_int_ge(fd, 0);
    do
        n = sendto(fd, "x", 1, 0, (struct sockaddr *)&address, address_len);
    while (n == 1);
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
}

const char *manager_received(void)
{
    static char message[512];
    ssize_t n = recv(manager_fd, message, sizeof(message) - 1, 0);

    message[n > 0 ? n : 0] = '\0';
    return message;
}
