/*
 * handlers/frame_handler: passes on whole frames, one per read.
 *
 * Bad frames, or one cut off by end of file, are counted and logged; frame_on_error then resets the
 * session, behind earlier frames, or skips the frame. Empty frames are skipped. A timeout within a
 * frame resets the session. Any frame cut off by a session's end is counted.
 */
#ifndef HANDLERS_FRAME_HANDLER_H
#define HANDLERS_FRAME_HANDLER_H

#include "handlers/frame_decoder.h"
#include "handlers/handler_type.h"

enum frame_handler_on_error { FRAME_HANDLER_CLOSE, FRAME_HANDLER_SKIP };

struct frame_handler_conf {
    struct frame_decoder_conf decoder;
    enum frame_handler_on_error on_error;
};

extern const struct handler_type frame_handler_type;

#endif
