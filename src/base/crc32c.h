/*
 * base/crc32c: CRC-32C (Castagnoli), as in SCTP and the PROXY protocol.
 *
 * Four bits a step, with a table of one cache line.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * crc32c_add(crc, data, len):
 * Extend ${crc}, the checksum so far (0 at first), by ${data}.
 *
 * Thread: any
 * Source: RFC 9260, appendix A; the generator polynomial is 0x1edc6f41
 */
uint32_t crc32c_add(uint32_t crc, const void *data, size_t len);

#endif
