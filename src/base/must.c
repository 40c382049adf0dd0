#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>

void must_fail(const char *file, int line, const char *func, const char *expr)
{
    fprintf(stderr, "reactord: bug: %s:%d: %s: MUST(%s) does not hold\n", file, line, func, expr);
    abort();
}
