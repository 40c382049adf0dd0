/* base/crc32c: the published vectors, and that it can be had in parts. */
#include <stdint.h>

#include "base/crc32c.h"
#include "base/must.h"
#include "support/suite.h"

/* RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms. */
static const struct {
    size_t len;
    uint8_t first;
    int8_t step;
    uint32_t crc;
} runs[] = {
    {32, 0x00, 0, 0x8a9136aa},
    {32, 0xff, 0, 0x62a8ab43},
    {32, 0x00, 1, 0x46dd794e},
    {32, 0x1f, -1, 0x113fdb5c},
};

GROUP(checksum, NULL, NULL);

TEST_EACH(checksum, runs_of_bytes_have_the_published_checksums, ARRAY_LEN(runs))
{
    uint8_t data[32];

    for (size_t i = 0; i < runs[_i].len; i++)
        data[i] = (uint8_t)(runs[_i].first + (int)i * runs[_i].step);
    ck_assert_uint_eq(crc32c_add(0, data, runs[_i].len), runs[_i].crc);
}

TEST(checksum, the_digits_have_the_check_value)
{
    ck_assert_uint_eq(crc32c_add(0, "123456789", 9), 0xe3069283);
}

TEST(checksum, no_bytes_have_checksum_zero_and_change_nothing)
{
    ck_assert_uint_eq(crc32c_add(0, "", 0), 0);
    ck_assert_uint_eq(crc32c_add(0xe3069283, "", 0), 0xe3069283);
}

TEST(checksum, checksum_of_parts_equals_that_of_the_whole)
{
    const char *text = "123456789";

    for (size_t cut = 0; cut <= 9; cut++)
        ck_assert_uint_eq(crc32c_add(crc32c_add(0, text, cut), text + cut, 9 - cut), 0xe3069283);
}
