"""How the self-test of a package compares numbers: bit by bit, and any NaN with any other."""

import shutil
import subprocess

import pytest

from linkwise.embedded import selftest

MAIN = """
int main(void)
{{
    static const {word} words[] = {{{words}}};
    const int count = (int)(sizeof words / sizeof words[0]);
    for (int i = 0; i < count; ++i) {{
        for (int k = 0; k < count; ++k) {{
            {real} found;
            (void)memcpy(&found, &words[i], sizeof found);
            (void)fprintf(stderr, "%d", differs("f", 0, 0, found, words[k]));
        }}
    }}
    return 0;
}}
"""
# 0, -0, 1, the next number, infinity, two NaNs
WORDS = {
    "double": (
        "uint64_t",
        "0ull, 0x8000000000000000ull, 0x3ff0000000000000ull, 0x3ff0000000000001ull, 0x7ff0000000000000ull, "
        "0x7ff8000000000000ull, 0xfff8000000000001ull",
    ),
    "float": ("uint32_t", "0u, 0x80000000u, 0x3f800000u, 0x3f800001u, 0x7f800000u, 0x7fc00000u, 0xffc00001u"),
}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_numbers_differ_unless_all_bits_are_equal_or_both_are_nan(tmp_path):
    (tmp_path / "any.h").write_text("")
    for real, (word, words) in WORDS.items():
        text = selftest._HEAD.format(prefix="any", word=word, real=real)
        (tmp_path / "main.c").write_text(text + MAIN.format(word=word, real=real, words=words))
        subprocess.run(["gcc", "-O1", "main.c", "-o", real, "-lm"], cwd=tmp_path, check=True)
        done = subprocess.run([str(tmp_path / real)], capture_output=True, text=True, check=True)
        equal = [[i == k or min(i, k) > 4 for k in range(7)] for i in range(7)]
        assert done.stderr == "".join(str(int(not same)) for row in equal for same in row)
        assert done.stdout.count("expected") == done.stderr.count("1")
