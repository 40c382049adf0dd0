#include "support/framed.h"

#include <stdio.h>

#include "support/frame_model.h"

struct framed framed;

void framed_teardown(void)
{
    frame_decoder_clear(&framed.decoder);
}

const char *framed_found(const struct frame_decoder_conf *conf, const char *stream, size_t len)
{
    static const char letters[] = {
        [FRAME_DECODER_NEGATIVE] = 'N',   [FRAME_DECODER_SHORT] = 'S',
        [FRAME_DECODER_LONG] = 'L',       [FRAME_DECODER_SHORTER_THAN_STRIP] = 'B',
        [FRAME_DECODER_NOT_NUMBER] = 'X', [FRAME_DECODER_NO_MEMORY] = 'M'};
    static char text[256];
    struct frame_decoder_bytes in = {(const uint8_t *)stream, len}, out;
    enum frame_decoder_result result;
    size_t n = 0;

    while ((result = frame_decoder_next(&framed.decoder, conf, &in, &out)) != FRAME_DECODER_MORE) {
        if (result == FRAME_DECODER_FRAME)
            n += (size_t)sprintf(text + n, "<%.*s>", (int)out.len, (const char *)out.data);
        else
            n += (size_t)sprintf(text + n, "%c", letters[result]);
        if (result == FRAME_DECODER_NO_MEMORY)
            break;
    }
    text[n] = '\0';
    return text;
}
