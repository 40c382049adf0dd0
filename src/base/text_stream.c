#include "base/text_stream.h"

#include <errno.h>
#include <stdlib.h>

int text_stream_close(FILE *f, char **text)
{
    if (fclose(f) == 0 && *text)
        return 0;
    free(*text);
    *text = NULL;
    return -ENOMEM;
}
