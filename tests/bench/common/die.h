/*
 * die: how a bench program fails. It has nobody to report an error to but the person who started
 * it, and a run that went wrong in any way must not leave a figure behind: so every failure ends
 * it.
 */
#ifndef BENCH_DIE_H
#define BENCH_DIE_H

/*
 * die(fmt, ...):
 * Print the message and exit with 1.
 */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * die_errno(what):
 * Print ${what} and the text of errno and exit with 1.
 */
_Noreturn void die_errno(const char *what);

#endif
