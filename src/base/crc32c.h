/*
 * base/crc32c: the checksum of Castagnoli, 32 bits, which SCTP and the PROXY protocol use. For a
 * few bytes now and then: four bits a step, from a table that takes one cache line.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * crc32c_add(crc, data, len):
 * The checksum of what ${crc} is the checksum of, followed by ${data}. That of nothing is 0.
 *
 * Thread: any
 * Units:  ${len} bytes, also 0
 * Source: RFC 9260, appendix A; the generator polynomial is 0x1edc6f41
 */
uint32_t crc32c_add(uint32_t crc, const void *data, size_t len);

#endif
