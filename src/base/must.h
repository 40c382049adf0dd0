/*
 * base/must: assertions that stay in release builds; compiler attributes.
 *
 * A failed MUST() means a bug in reactord, never bad input or a lack of resources.
 */
#ifndef BASE_MUST_H
#define BASE_MUST_H

#include <stddef.h>

#define NODISCARD         __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

#define MUST(cond)                                          \
    do {                                                    \
        if (__builtin_expect(!(cond), 0))                   \
            must_fail(__FILE__, __LINE__, __func__, #cond); \
    } while (0)

#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/*
 * must_fail(file, line, func, expr):
 * Print the failed expression to stderr and abort.
 *
 * Errors: does not return
 */
_Noreturn void must_fail(const char *file, int line, const char *func, const char *expr);

#endif
