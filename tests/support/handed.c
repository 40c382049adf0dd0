/* support/handed: see handed.h. */
#include "support/handed.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST 3

static int count;
static char names[256];

__attribute__((constructor)) static void set_aside(void)
{
    for (int fd = FIRST; fd < FIRST + HANDED_MAX; fd++) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        if (fcntl(fd, F_GETFD) < 0)
            dup3(null, fd, O_CLOEXEC);
        if (null != fd)
            close(null);
    }
}

static void set(const char *name, long value)
{
    char text[32];

    snprintf(text, sizeof(text), "%ld", value);
    ck_assert_int_eq(setenv(name, text, 1), 0);
}

void handed_open(void)
{
    handed_close();
    count = 0;
    names[0] = '\0';
}

void handed_close(void)
{
    for (int fd = FIRST; fd < FIRST + HANDED_MAX; fd++)
        close(fd);
}

int handed_add(int fd, const char *name)
{
    int number = FIRST + count;
    size_t len = strlen(names);

    ck_assert_int_lt(count, HANDED_MAX);
    ck_assert_int_eq(dup2(fd, number), number);
    if (fd != number)
        close(fd);
    count++;
    snprintf(names + len, sizeof(names) - len, "%s%s", len > 0 ? ":" : "", name);
    set("LISTEN_PID", (long)getpid());
    set("LISTEN_FDS", count);
    ck_assert_int_eq(setenv("LISTEN_FDNAMES", names, 1), 0);
    return number;
}
