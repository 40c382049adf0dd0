#include "ctl/ctl_units.h"

#include <math.h>
#include <stdint.h>

#define MAX_SECONDS       1e12 /* more does not fit the integers used here */
#define MINUTE_S          60
#define HOUR_S            3600
#define DAY_S             86400
#define FIRST_SHORT_COUNT 100000 /* from here on counts are shortened */

/* Write ${n} with a letter for the power of ${base}: one decimal below 10, else none. */
static void ctl_units_put_scaled(FILE *out, double n, double base, const char *letters)
{
    unsigned step = 0;

    /* 999.5 would be rounded to a fourth digit. */
    while (n >= base - 0.5 && letters[step + 1]) {
        n /= base;
        step++;
    }
    if (step == 0)
        fprintf(out, "%.0f", n);
    else
        fprintf(out, n < 9.95 ? "%.1f%c" : "%.0f%c", n, letters[step]);
}

void ctl_units_put_bytes(FILE *out, double n)
{
    ctl_units_put_scaled(out, n, 1024, " KMGTPE");
}

void ctl_units_put_count(FILE *out, double n)
{
    if (fabs(n) < FIRST_SHORT_COUNT)
        fprintf(out, "%.0f", n);
    else
        ctl_units_put_scaled(out, n, 1000, " kMGTPE");
}

static void ctl_units_put_long(FILE *out, uint64_t s)
{
    if (s < HOUR_S)
        fprintf(out, "%um%02us", (unsigned)(s / MINUTE_S), (unsigned)(s % MINUTE_S));
    else if (s < DAY_S)
        fprintf(out, "%uh%02um", (unsigned)(s / HOUR_S), (unsigned)(s % HOUR_S / MINUTE_S));
    else
        fprintf(out, "%llud%02uh", (unsigned long long)(s / DAY_S), (unsigned)(s % DAY_S / HOUR_S));
}

void ctl_units_put_seconds(FILE *out, double seconds)
{
    if (!(seconds >= 0 && seconds <= MAX_SECONDS))
        fputs("-", out);
    else if (seconds < 0.0000005)
        fputs("0s", out);
    else if (seconds < 0.0009995)
        fprintf(out, "%.0fus", seconds * 1e6);
    else if (seconds < 0.9995)
        fprintf(out, "%.0fms", seconds * 1e3);
    else if (seconds < 9.95)
        fprintf(out, "%.1fs", seconds);
    else if (seconds < MINUTE_S)
        fprintf(out, "%us", (unsigned)seconds);
    else
        ctl_units_put_long(out, (uint64_t)seconds);
}
