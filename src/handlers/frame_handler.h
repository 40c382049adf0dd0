/*
 * handlers/frame_handler: passes on whole frames, one per read.
 *
 * A bad frame, or one that end of file cuts off, is counted and logged. Then frame_on_error
 * decides: pass on the earlier frames and reset the session, or skip the frame. Empty frames are
 * not passed on. A timeout within a frame resets the session. A frame that the end of the session
 * cuts off is only counted.
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
