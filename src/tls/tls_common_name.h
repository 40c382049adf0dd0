/* tls/tls_common_name: the common name (CN) in a certificate. */
#ifndef TLS_TLS_COMMON_NAME_H
#define TLS_TLS_COMMON_NAME_H

#include <stddef.h>

#include <openssl/types.h>

/* Longest name, with its NUL: 64 characters (X.520) of at most 4 bytes. */
#define TLS_COMMON_NAME_BYTES (64 * 4 + 1)

/*
 * tls_common_name(out, certificate):
 * Write the first common name of ${certificate} to ${out}, of TLS_COMMON_NAME_BYTES, in UTF-8;
 * return its length. 0, and "": there is none, it is no text of its type, has a NUL, or is too
 * long. A name that were cut would be another name.
 */
size_t tls_common_name(char *out, const X509 *certificate);

#endif
