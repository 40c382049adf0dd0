/*
 * access: what it costs to look a client up among prefixes (limits/prefix_table). For each number
 * of prefixes and either family: nanoseconds for a lookup of addresses drawn at random, one after
 * the other; what building the table takes; its memory.
 *
 *     access [MILLISECONDS]      each figure is the median of nine runs of so long (100)
 *
 * Prefixes are 16 to 32 and 19 to 64 bits long, as in routing tables mostly 24 and 48, and drawn at
 * random; half of the addresses that are looked up are in one.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "common/die.h"
#include "limits/prefix_table.h"
#include "net/address.h"
#include "net/cidr.h"

enum { RUNS = 9, ADDRESSES = 65536, MAX_PREFIXES = 1000000 };

static const unsigned counts[] = {100, 10000, 100000, MAX_PREFIXES};

static struct cidr *prefixes;
static struct address addresses[ADDRESSES];
static uint64_t state;
static volatile uint32_t found;

static uint64_t draw(void)
{
    return hash_mix(state++);
}

/* Global unicast only: 2000::/3. */
static struct cidr draw_prefix(uint8_t len)
{
    struct cidr c = {.len = len};
    uint64_t word = draw(), kind = draw();

    memcpy(c.host, &word, 8);
    if (len == 4) {
        memset(c.host + 4, 0, 4);
        c.bits = (uint8_t)(kind % 2 == 0 ? 24 : 16 + kind / 2 % 17);
    } else {
        c.host[0] = 0x20 | (c.host[0] & 0x1f);
        c.bits = (uint8_t)(kind % 2 == 0 ? 48 : 19 + kind / 2 % 46);
    }
    for (unsigned bit = c.bits; bit < 8U * len; bit++)
        c.host[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    return c;
}

static void draw_addresses(uint8_t len, unsigned n)
{
    for (unsigned i = 0; i < ADDRESSES; i++) {
        struct cidr c = i % 2 == 0 ? prefixes[draw() % n] : draw_prefix(len);
        struct address *a = &addresses[i];

        *a = (struct address){.u.sa.sa_family = len == 4 ? AF_INET : AF_INET6};
        memcpy(len == 4 ? (void *)&a->u.in.sin_addr : (void *)&a->u.in6.sin6_addr, c.host, len);
    }
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *list, size_t n)
{
    qsort(list, n, sizeof(*list), by_value);
    return list[n / 2];
}

static double lookup_ns(const struct prefix_table *t, int64_t run_ns)
{
    double of_run[RUNS];

    for (int run = 0; run < RUNS; run++) {
        int64_t began_ns = clock_now_ns(), now_ns;
        uint64_t n = 0;

        do {
            for (unsigned i = 0; i < 256; i++, n++)
                found = prefix_table_find(t, &addresses[n % ADDRESSES]);
            now_ns = clock_now_ns();
        } while (now_ns < began_ns + run_ns);
        of_run[run] = (double)(now_ns - began_ns) / (double)n;
    }
    return median(of_run, RUNS);
}

static size_t used_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void measure(uint8_t len, unsigned n, int64_t run_ns)
{
    struct prefix_table *t;
    size_t before = used_bytes();
    int64_t began_ns;
    double ms;

    for (unsigned i = 0; i < n; i++)
        prefixes[i] = draw_prefix(len);
    draw_addresses(len, n);
    began_ns = clock_now_ns();
    if (prefix_table_create(&t, prefixes, n) < 0)
        die("a table cannot be made");
    ms = (double)(clock_now_ns() - began_ns) / NS_PER_MS;
    printf("| %-4s | %8u | %9.0f | %11.1f | %12.2f |\n", len == 4 ? "IPv4" : "IPv6", n,
           lookup_ns(t, run_ns), ms, (double)(used_bytes() - before) / 1e6);
    fflush(stdout);
    prefix_table_destroy(t);
}

int main(int argc, char **argv)
{
    int64_t run_ns = (argc > 1 ? atoi(argv[1]) : 100) * NS_PER_MS;

    if (argc > 2 || run_ns <= 0)
        die("usage: access [MILLISECONDS]");
    prefixes = calloc(MAX_PREFIXES, sizeof(*prefixes));
    if (!prefixes)
        die("no memory");
    printf("|      | prefixes | ns lookup | ms to build | MB of memory |\n"
           "|------|----------|-----------|-------------|--------------|\n");
    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        measure(4, counts[i], run_ns);
    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        measure(16, counts[i], run_ns);
    free(prefixes);
    return 0;
}
