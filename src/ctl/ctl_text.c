#include "ctl/ctl_text.h"

#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "ctl/ctl_memory.h"

/*
 * Number of bytes of the character at ${text}, 1 if invalid; sets *${columns} to 0 if not
 * printable.
 */
static size_t ctl_text_character(const char *text, size_t len, unsigned *columns)
{
    mbstate_t state = {0};
    wchar_t wide;
    size_t n = mbrtowc(&wide, text, len, &state);
    int width;

    *columns = 0;
    if (n == 0 || n > len) /* NUL, invalid or incomplete */
        return 1;
    width = iswprint((wint_t)wide) ? wcwidth(wide) : 0;
    *columns = width > 0 ? (unsigned)width : 0;
    return n;
}

void ctl_text_put(FILE *out, const char *text, size_t len, bool keep_lines)
{
    for (size_t i = 0, n; i < len; i += n) {
        unsigned columns;

        n = ctl_text_character(text + i, len - i, &columns);
        if (columns > 0 || (keep_lines && (text[i] == '\n' || text[i] == '\t')))
            fwrite(text + i, 1, n, out);
        else
            for (size_t k = 0; k < n; k++)
                fprintf(out, "\\x%02x", (unsigned char)text[i + k]);
    }
}

char *ctl_text_clean(const char *text)
{
    struct ctl_memory_text copy;

    ctl_memory_text_open(&copy);
    ctl_text_put(copy.file, text, strlen(text), false);
    return ctl_memory_text_close(&copy);
}

size_t ctl_text_cut(const char *clean, unsigned columns)
{
    size_t len = strlen(clean), i = 0;

    while (i < len) {
        unsigned width;
        size_t n = ctl_text_character(clean + i, len - i, &width);

        if (width > columns)
            break;
        columns -= width;
        i += n;
    }
    return i;
}

unsigned ctl_text_columns(const char *clean)
{
    size_t len = strlen(clean);
    unsigned columns = 0, width;

    for (size_t i = 0; i < len; columns += width)
        i += ctl_text_character(clean + i, len - i, &width);
    return columns;
}
