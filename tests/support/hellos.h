/*
 * support/hellos: first bytes of real TLS clients: OpenSSL 3.0, curl 7.88, GnuTLS 3.7, Go 1.19, and
 * Chromium with GREASE and an ML-KEM key share (1,954 bytes).
 *
 * The fingerprints were computed by another program.
 */
#ifndef SUPPORT_HELLOS_H
#define SUPPORT_HELLOS_H

#include <stddef.h>
#include <stdint.h>

#define HELLOS          6
#define HELLO_MAX_BYTES 2048

struct hello {
    const char *client;
    const char *sni;  /* empty: none */
    const char *alpn; /* with commas between */
    const char *ja4;
    const char *hex;
};

extern const struct hello hellos[HELLOS];

/*
 * hello_bytes(out, h):
 * Write the bytes of ${h} to HELLO_MAX_BYTES; return their number.
 *
 * Thread: any
 */
size_t hello_bytes(uint8_t *out, const struct hello *h);

/*
 * hello_in_records(out, data, len, fragment):
 * Divide a hello that is one record among records of ${fragment} bytes; return the length.
 *
 * Thread: any
 * Units:  ${out} has six times ${len}
 */
size_t hello_in_records(uint8_t *out, const uint8_t *data, size_t len, size_t fragment);

#endif
