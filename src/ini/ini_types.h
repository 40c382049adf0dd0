/* ini/ini_types: an INI file as sections, keys and values. */
#ifndef INI_INI_TYPES_H
#define INI_INI_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * iniparser 4.1 stops at a line of 1,023 bytes; a value must leave space for `key = ""` in its line.
 */
#define INI_FILE_BYTES   (32 << 20)
#define INI_LINE_BYTES   1000
#define INI_VALUE_BYTES  INI_LINE_BYTES
#define INI_NAME_BYTES   64          /* of a key, or of a word in a section name */
#define INI_DEFAULTS     "defaults " /* of [defaults KIND] */
#define INI_MAX_SECTIONS 8192
#define INI_MAX_ENTRIES  524288

struct ini_entry {
    const char *key;   /* lower case */
    const char *value; /* without outer blanks and quotes */
    unsigned line;     /* in the text of all files */
    const char *path;  /* of the file that has it */
    unsigned path_line;
    bool refused;    /* invalid, and reported */
    bool is_default; /* from a [defaults KIND] */
};

struct ini_section {
    const char *name; /* between the brackets, lower case */
    unsigned line;
    unsigned n_entries;
    struct ini_entry *entries; /* in file order, unique */
    unsigned depth;            /* of its file: 1, of an included file 2, and so on */
    unsigned floor; /* least depth since the section before; less than that one's: its file ended */
};

struct ini {
    struct ini_section *sections; /* in file order, unique but for [defaults KIND] */
    unsigned n_sections;
    uint64_t digest;    /* of all files, see struct ini_include_files */
    unsigned n_refused; /* invalid sections, reported and left out */
    struct ini_memory *memory;
};

#endif
