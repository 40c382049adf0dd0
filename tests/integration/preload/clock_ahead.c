/*
 * preload/clock_ahead: the time of day that OpenSSL dates and checks tickets by is ahead by
 * REACTORD_TEST_AHEAD_S seconds, or behind.
 */
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long ahead_s(void)
{
    const char *text = getenv("REACTORD_TEST_AHEAD_S");

    return text ? strtol(text, NULL, 10) : 0;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += ahead_s();
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec + ahead_s();
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
