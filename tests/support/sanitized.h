/*
 * support/sanitized: how often a test does something. A sanitizer makes it slow, and sees more each
 * time.
 */
#ifndef SUPPORT_SANITIZED_H
#define SUPPORT_SANITIZED_H

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IF_SANITIZED(few, many) (few)
#else
#define IF_SANITIZED(few, many) (many)
#endif

#endif
