/*
 * base/crc32c: CRC-32C (Castagnoli), as in SCTP and the PROXY protocol.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * crc32c_add(crc, data, len):
 * Extend ${crc}, the checksum of the preceding data (0: none), by ${data}; return the result.
 *
 * Source: RFC 9260, appendix A
 */
uint32_t crc32c_add(uint32_t crc, const void *data, size_t len);

#endif
