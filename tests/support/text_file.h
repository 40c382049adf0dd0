/*
 * support/text_file: files for the time of one test, in a directory of its own.
 *
 * text_file_enter() and text_file_leave() are a checked fixture; between them the current directory
 * is new and empty, so that a test can name its files and knows the names that messages have.
 */
#ifndef SUPPORT_TEXT_FILE_H
#define SUPPORT_TEXT_FILE_H

#include <stddef.h>

/*
 * text_file_enter() / text_file_leave():
 * Make a directory and go there; remove it with the files in it.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void text_file_enter(void);
void text_file_leave(void);

/*
 * text_file_write(name, bytes, len):
 * Make the file ${name}, or replace it.
 *
 * Thread: the test's
 * Units:  ${len} bytes
 * Errors: none (the test fails)
 */
void text_file_write(const char *name, const void *bytes, size_t len);

/*
 * text_file_write_text(name, text):
 * As text_file_write(), with a string.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void text_file_write_text(const char *name, const char *text);

#endif
