/* report: the result of a run, as one line of JSON on standard output. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

struct load;

/*
 * diagnostics_print(load):
 * Print the line. Figures about the server are left out when none is watched, latencies when the
 * mode has none.
 */
void diagnostics_print(const struct load *load);

#endif
