/*
 * option/option_pipeline: option kinds: pipeline handlers and framing.
 */
#ifndef OPTION_OPTION_PIPELINE_H
#define OPTION_OPTION_PIPELINE_H

#include "option/option.h"

/* list and n of a struct pipeline_conf: comma-separated unique handlers */
extern const struct option_kind option_pipeline;

/* int64_t bytes, option.min to option.max, optional sign */
extern const struct option_kind option_pipeline_adjustment;

/* struct frame_delimiter_list: comma-separated, with escapes of option/option_bytes */
extern const struct option_kind option_pipeline_delimiters;

/* uint8_t: one character or escape, no digit */
extern const struct option_kind option_pipeline_length_end;

#endif
