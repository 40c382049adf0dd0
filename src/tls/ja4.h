/*
 * tls/ja4: JA4 fingerprint of a TLS client, as t13d1516h2_8daaf6152771_e5627efa2ab1.
 *
 * Transport, version, SNI, numbers of cipher suites and extensions, ALPN; hash of the sorted cipher
 * suites; hash of the sorted extensions, without SNI and ALPN, and the signature algorithms. GREASE
 * is ignored.
 * Source: https://github.com/FoxIO-LLC/ja4/blob/main/technical_details/JA4.md
 */
#ifndef TLS_JA4_H
#define TLS_JA4_H

#include "tls/client_hello.h"

#define JA4_BYTES 37

/*
 * ja4_write(out, hello):
 * Write the fingerprint of ${hello} to ${out}, of JA4_BYTES; empty if libcrypto fails.
 */
void ja4_write(char *out, const struct client_hello *hello);

#endif
