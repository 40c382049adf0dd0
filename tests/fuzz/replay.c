/* Runs a fuzz target over the files named on the command line, for compilers without libFuzzer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    uint8_t *copy;
    size_t size;

    if (f == NULL) {
        perror(path);
        return -1;
    }
    size = fread(data, 1, sizeof(data), f);
    fclose(f);
    copy =
        malloc(size > 0 ? size : 1); /* exactly as large, so that a read behind its end is seen */
    if (copy == NULL)
        return -1;
    for (size_t i = 0; i < size; i++)
        copy[i] = data[i];
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]) < 0;
    printf("%d inputs\n", argc - 1);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
