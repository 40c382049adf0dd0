#include "load/report.h"

#include "load/load.h"

#include <inttypes.h>
#include <stdio.h>

static void report_latency(const struct histogram *latency)
{
    static const struct {
        const char *name;
        double percent;
    } points[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}};

    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
        printf(", \"%s_us\": %.1f", points[i].name,
               (double)histogram_percentile_ns(latency, points[i].percent) / 1e3);
    printf(", \"max_us\": %.1f", (double)latency->max_ns / 1e3);
}

static void report_server(const struct load *load)
{
    double cpu_ns = (double)load->server_cpu_ns;
    double grown_kb = (double)load->last_pss_kb - (double)load->first_pss_kb;

    printf(", \"server_cpu_s\": %.4f, \"server_cpu_percent\": %.1f", cpu_ns / 1e9,
           100 * cpu_ns / (double)load->measured_ns);
    if (load->mode == &load_stream || load->mode == &load_fetch)
        printf(", \"cpu_s_per_gb\": %.4f", cpu_ns / (double)load->bytes);
    else if (load->ops)
        printf(", \"cpu_us_per_op\": %.4f", cpu_ns / 1e3 / (double)load->ops);
    printf(", \"pss_before_kb\": %" PRIu64 ", \"pss_after_kb\": %" PRIu64, load->first_pss_kb,
           load->last_pss_kb);
    if (load->opts.connections > 1) /* the first one is in both figures */
        printf(", \"pss_bytes_per_connection\": %.1f",
               grown_kb * 1024 / (load->opts.connections - 1));
}

void diagnostics_print(const struct load *load)
{
    double seconds = (double)load->measured_ns / 1e9;

    printf("{\"mode\": \"%s\", \"connections\": %u, \"size\": %u, \"seconds\": %.4f, "
           "\"ops\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"ops_per_s\": %.1f, \"mb_per_s\": %.2f",
           load->mode->name, load->opts.connections, load->opts.size_bytes, seconds, load->ops,
           load->bytes, (double)load->ops / seconds, (double)load->bytes / seconds / 1e6);
    if (load->latency.total)
        report_latency(&load->latency);
    if (load->opts.server_pid)
        report_server(load);
    printf("}\n");
}
