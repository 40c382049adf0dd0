#!/usr/bin/env python3
"""src/engine/README.md is true: the functions, files and tests that its items name exist. So do the files, functions and
types that README.md names."""
import pathlib
import re
import sys

TABLE = "src/engine/README.md"
README = "README.md"
ITEM = re.compile(r"^- \*\*(.+?)\*\*:(.*?)(?=^- \*\*|^#|^\S|\Z)", re.M | re.S)
WORD = re.compile(r"`([^`]+)`")


def text_of(folder, pattern):
    return "\n".join(path.read_text() for path in pathlib.Path(folder).rglob(pattern))


def readme_problems(files, sources):
    chapter = pathlib.Path(README).read_text().partition("\n## Reading the code\n")[2].partition("\n## ")[0]
    for word in WORD.findall(chapter):
        if re.fullmatch(r"[\w/.*]+\.[ch]", word):
            exists = any(pathlib.PurePath(file).match(word) for file in files)
        elif re.fullmatch(r"\w+\(\)", word):
            exists = word[:-1] in sources
        elif re.match(r"(struct|enum) ", word):
            exists = f"{word} {{" in sources
        else:
            continue
        if not exists:
            yield f"{README}: there is no {word}"


def main():
    tests = text_of("tests", "*.c") + text_of("tests", "*.py")
    sources = text_of("src", "*.[ch]")
    names = set(re.findall(r"TEST\w*\(\w+,\s*(\w+)[,)]", tests))
    files = {str(path.relative_to(folder)) for folder in ("tests", "tests/unit", "src")
             for path in pathlib.Path(folder).rglob("*") if path.is_file()}
    files |= {path.split("/")[-1] for path in files}
    files.update(str(path) for path in pathlib.Path("tests").rglob("*.[ch]"))
    items = ITEM.findall(pathlib.Path(TABLE).read_text())
    problems = list(readme_problems(files, sources))
    for name, text in items:
        text, _, shown_by = text.partition("\n  Tests: ")
        _, _, where = text.partition("\n  Where: ")
        for word in WORD.findall(where):
            if word not in files and not re.search(rf"\b{re.escape(word)}\(", sources):
                problems.append(f"{TABLE}: {name}: there is no {word}")
        for word in WORD.findall(shown_by):
            if word not in files and word not in names:
                problems.append(f"{TABLE}: {name}: there is no test {word}")
    if not items:
        problems.append(f"{TABLE}: no item was found")
    print("\n".join(problems) if problems else f"design: {len(items)} behaviours and README's places, all of it exists")
    return 1 if problems else 0


sys.exit(main())
