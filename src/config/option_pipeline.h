/*
 * config/option_pipeline: the kinds of values that handlers need: which ones a listener has, and
 * what numbers below 0 are for. See option.h for the contract of option_kind.set.
 */
#ifndef CONFIG_OPTION_PIPELINE_H
#define CONFIG_OPTION_PIPELINE_H

#include "config/option.h"

/*
 * list and n of a struct pipeline_conf: the names of handlers, each at most once, with commas
 * between
 */
extern const struct option_kind option_pipeline;

/* int64_t bytes, from option.min to option.max, perhaps with a sign before it */
extern const struct option_kind option_pipeline_adjustment;

/* struct frame_delimiter_list: text with the escapes of config/option_bytes, and commas between */
extern const struct option_kind option_pipeline_delimiters;

/* uint8_t, no digit: one character, or one of these escapes */
extern const struct option_kind option_pipeline_length_end;

#endif
