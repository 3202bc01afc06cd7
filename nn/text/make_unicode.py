#!/usr/bin/env python3
"""Writes unicode_tables.h: what the tokenizers know about characters, taken from Python's own Unicode database.

    python3 nn/text/make_unicode.py > nn/text/unicode_tables.h

Four tables:

- properties, two bits of knowledge in one byte for each code point, stored as pages of 128 (equal pages once):
    * its class: letter (categories L*), number (N*), space (White_Space), control (Cc and Cf but for spaces),
      punctuation (P*, and all printable ASCII that is neither letter, digit nor space, as BERT counts it), mark (Mn),
      or other;
    * its part in the final sigma's rule: cased, or ignored, or neither (Unicode 3.13, Final_Sigma);
- lower case, as ranges of code points that shift by the same distance (U+0130, which becomes two, is left to the code);
- what is left of a character after canonical decomposition (NFD) and the loss of its marks (Mn), where that isn't the
  character itself. Hangul syllables decompose by arithmetic, in the code.
"""

import sys
import unicodedata

PAGE = 128
CODE_POINTS = range(0x110000)
OTHER, LETTER, NUMBER, SPACE, CONTROL, PUNCTUATION, MARK = range(7)
CASED, IGNORED = 8, 16
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
HANGUL = range(0xAC00, 0xD7A4)


def character_class(point):
    category = unicodedata.category(chr(point))
    if point in WHITE_SPACE:
        return SPACE
    if category[0] == "L":
        return LETTER
    if category[0] == "N":
        return NUMBER
    if category in ("Cc", "Cf"):
        return CONTROL
    if category[0] == "P" or 0x20 < point < 0x7F:
        return PUNCTUATION
    return MARK if category == "Mn" else OTHER


def sigma_part(point):
    """Asks str.lower(), which knows the rule: a sigma is final after a cased letter and before none."""
    if 0xD800 <= point < 0xE000:
        return 0
    final, alone = "\u03c2", ("A\u03a3" + chr(point)).lower()[1]
    if alone != final:
        return CASED
    return IGNORED if ("A\u03a3" + chr(point) + "A").lower()[1] != final else 0


def pages():
    numbers, index = {}, []
    properties = bytes(character_class(point) | sigma_part(point) for point in CODE_POINTS)
    for start in range(0, len(properties), PAGE):
        index.append(numbers.setdefault(properties[start : start + PAGE], len(numbers)))
    assert len(numbers) <= 256
    return index, list(numbers)


def lower_ranges():
    """[first, last, step, shift]"""
    ranges = []
    for point in CODE_POINTS:
        lower = chr(point).lower()
        if lower == chr(point) or len(lower) > 1:
            continue
        shift = ord(lower) - point
        if ranges and ranges[-1][3] == shift:
            first, last, step, _ = ranges[-1]
            if point - last == step or (first == last and point - last <= 2):
                ranges[-1][1:3] = point, point - last
                continue
        ranges.append([point, point, 1, shift])
    return ranges


def stripped():
    for point in CODE_POINTS:
        if point in HANGUL or 0xD800 <= point < 0xE000 or unicodedata.category(chr(point)) == "Mn":
            continue
        left = [c for c in unicodedata.normalize("NFD", chr(point)) if unicodedata.category(c) != "Mn"]
        assert 1 <= len(left) <= 3
        if left != [chr(point)]:
            yield point, [ord(c) for c in left]


def print_rows(items):
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 120:
            print(line)
            line = "   "
        line += " " + item + ","
    print(line)


def print_table(declaration, items):
    print(f"\nstatic const {declaration} = {{")
    print_rows(items)
    print("};")


def main():
    assert [chr(p) for p in CODE_POINTS if len(chr(p).lower()) > 1] == ["\u0130"]
    index, contents = pages()
    print(f"/* Unicode {unicodedata.unidata_version}. Written by make_unicode.py, which says what it means. */")
    print("/* clang-format off */")
    print("#ifndef RAPT_NN_UNICODE_TABLES_H\n#define RAPT_NN_UNICODE_TABLES_H\n\n#include <stdint.h>\n")
    print(f"enum {{ PAGE_BITS = {PAGE.bit_length() - 1}, CLASS_MASK = {CASED - 1}, CASED = {CASED}, IGNORED = {IGNORED} }};\n")
    print("typedef struct lower_range {\n    int32_t first, last, step, shift;\n} lower_range;\n")
    print("typedef struct stripping {\n    int32_t from, to[3]; /* zeros: no more */\n} stripping;")
    print_table(f"uint8_t page_of[{len(index)}]", map(str, index))
    print_table(f"uint8_t pages[{len(contents)}][{PAGE}]", ["{" + ", ".join(map(str, page)) + "}" for page in contents])
    ranges = lower_ranges()
    print_table(f"lower_range lower_ranges[{len(ranges)}]", [f"{{0x{a:X}, 0x{b:X}, {c}, {d}}}" for a, b, c, d in ranges])
    strip = list(stripped())
    print_table(f"stripping strippings[{len(strip)}]",
                [f"{{0x{point:X}, {{" + ", ".join(f"0x{p:X}" for p in left) + "}}" for point, left in strip])
    print("\n#endif")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    main()
