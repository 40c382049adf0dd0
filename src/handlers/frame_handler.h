/*
 * handlers/frame_handler: what is behind it in the pipeline gets whole frames, one with each read,
 * and nothing else.
 *
 * A frame is passed on when its last byte has come. Bad ones, and one that the end of file cuts
 * off, are counted and logged; then the session is reset, behind the frames before, or they are
 * skipped (frame_on_error). An empty frame, as stripping may leave, is not passed on.
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

/* `frame`, by pipeline_conf.frame */
extern const struct handler_type frame_handler_type;

#endif
