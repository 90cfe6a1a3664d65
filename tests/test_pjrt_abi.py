"""Our declarations of the PJRT C API against the header that a vendor's package ships."""

import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = ROOT / "src/pjrt/pjrt_abi.h"
SLOTS = ROOT / "src/pjrt/pjrt_slots.def"

# Records that are not the argument of a function: ours, theirs.
OTHERS = {
    "tt_pjrt_extension_t": "PJRT_Extension_Base",
    "tt_pjrt_version_t": "PJRT_Api_Version",
    "tt_pjrt_value_t": "PJRT_NamedValue",
    "tt_pjrt_program_t": "PJRT_Program",
    "tt_pjrt_tiled_layout_t": "PJRT_Buffer_MemoryLayout_Tiled",
    "tt_pjrt_strided_layout_t": "PJRT_Buffer_MemoryLayout_Strides",
    "tt_pjrt_layout_t": "PJRT_Buffer_MemoryLayout",
    "tt_pjrt_execute_options_t": "PJRT_ExecuteOptions",
}
HOST = [
    "ImmutableOnlyDuringCall",
    "ImmutableUntilTransferCompletes",
    "ImmutableZeroCopy",
    "MutableZeroCopy",
]
OUR_HOST = [
    "ONLY_DURING_CALL",
    "UNTIL_TRANSFER_COMPLETES",
    "IMMUTABLE_ZERO_COPY",
    "MUTABLE_ZERO_COPY",
]
KINDS = {
    "STRING": "kString",
    "INT": "kInt64",
    "INTS": "kInt64List",
    "FLOAT": "kFloat",
    "BOOL": "kBool",
}
EXTENSIONS = {"LAYOUTS": "Layouts", "FFI": "FFI"}
DTYPES = {"I1": "PRED"}


def vendor_header():
    try:
        spec = importlib.util.find_spec("xla_plugins.xla_cpu_pjrt")
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        return None
    header = pathlib.Path(spec.origin).parent / "include/pjrt_c_api.h"
    return header if header.exists() else None


HEADER = vendor_header()
CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = [
    pytest.mark.skipif(HEADER is None, reason="xla-cpu-pjrt with its header is not installed"),
    pytest.mark.skipif(CC is None, reason="no C compiler"),
]


def declarations(body):
    """The names of a struct's fields in order; a nested union counts as its first member."""
    body = re.sub(r"//[^\n]*", "", body)
    names = []
    for text in re.split(r";(?![^{]*\})", body):
        text = " ".join(text.split())
        if text.startswith(("typedef", "#")):
            continue
        union = re.match(r"union \{(.*)\} ?(\w*)$", text)
        if union:
            first = declarations(union.group(1))[0]
            names.append(f"{union.group(2)}.{first}" if union.group(2) else first)
            continue
        function = re.search(r"\(\*(\w+)\)", text)
        if function:
            names.append(function.group(1))
        elif text == "TT_PJRT_HEAD":
            names += ["struct_size", "extensions"]
        elif text:
            fields = [re.search(r"(\w+)$", part.strip()).group(1) for part in text.split(",")]
            if text.startswith("tt_pjrt_stat_t"):
                fields = [f"{f}.{part}" for f in fields for part in ("value", "is_set")]
            names += fields
    return names


def structs(text, pattern):
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    tables = ("tt_pjrt_api_t", "PJRT_Api")  # test_table's
    return {
        m["name"]: declarations(m["body"])
        for m in re.finditer(pattern, text, re.S)
        if m["name"] not in tables
    }


def our_structs():
    pattern = r"typedef struct \w*\s*\{(?P<body>(?:[^{}]|\{[^{}]*\})*)\} (?P<name>tt_pjrt_\w+);"
    return structs(OURS.read_text(), pattern)


def their_structs():
    pattern = r"struct (?P<name>PJRT_\w+) \{(?P<body>(?:[^{}]|\{[^{}]*\})*)\}"
    return structs(HEADER.read_text(), pattern)


def our_slots():
    pattern = r"^SLOT(?:_VOID)?\((\w+), (\w+)\)"
    return re.findall(pattern, SLOTS.read_text(), re.M)


def compile_asserts(lines, tmp_path):
    source = tmp_path / "abi.c"
    source.write_text("\n".join([f'#include "{HEADER}"', '#include "pjrt/pjrt_abi.h"', *lines]))
    run = subprocess.run(
        [CC, "-std=gnu17", "-fsyntax-only", f"-I{ROOT / 'src'}", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def same(a, b, note):
    return f'_Static_assert({a} == {b}, "{note}");'


def compare(ours, theirs, our_fields, their_fields):
    assert len(our_fields) >= len(their_fields), (ours, theirs)
    for mine, other in zip(our_fields, their_fields):
        yield same(f"offsetof({ours}, {mine})", f"offsetof({theirs}, {other})", f"{theirs}.{other}")
    if len(our_fields) == len(their_fields):
        yield same(f"sizeof({ours})", f"sizeof({theirs})", theirs)


def test_records(tmp_path):
    mine, other = our_structs(), their_structs()
    lines, seen = [], set()
    pairs = [(args, f"PJRT_{name}_Args") for name, args in our_slots()]
    for ours, theirs in [*pairs, *OTHERS.items()]:
        if ours == "tt_pjrt_head_args_t" or theirs not in other:
            continue  # not declared by us, or newer than the vendor's header
        seen.add(ours)
        lines += compare(ours, theirs, mine[ours], other[theirs])
    compile_asserts(lines, tmp_path)
    assert len(lines) > 400
    assert len(seen) > 30


def test_table(tmp_path):
    table = re.search(r"typedef struct PJRT_Api \{(.*?)\} PJRT_Api;", HEADER.read_text(), re.S)
    theirs = re.findall(r"_PJRT_API_STRUCT_FIELD\(PJRT_(\w+)\)", table.group(1))
    ours = [name for name, _ in our_slots()]
    assert ours[: len(theirs)] == theirs
    assert len(set(ours)) == len(ours)
    compile_asserts(
        [same(f"offsetof(tt_pjrt_api_t, {n})", f"offsetof(PJRT_Api, PJRT_{n})", n) for n in theirs],
        tmp_path,
    )


def test_numbers(tmp_path):
    text = OURS.read_text()
    lines = []
    codes = re.search(r"typedef enum tt_pjrt_code_e \{(.*?)\}", text, re.S).group(1)
    for name in re.findall(r"TT_PJRT_(\w+),", codes):
        lines.append(same(f"(int)TT_PJRT_{name}", f"(int)PJRT_Error_Code_{name}", name))
    types = re.findall(r"X\((\d+), (\w+)\)", text)
    assert len(types) == 19
    for number, name in types:
        lines.append(same(number, f"(int)PJRT_Buffer_Type_{DTYPES.get(name, name)}", name))
    for mine, other in zip(OUR_HOST, HOST):
        lines.append(
            same(f"(int)TT_PJRT_HOST_{mine}", f"(int)PJRT_HostBufferSemantics_k{other}", other)
        )
    for mine, other in KINDS.items():
        lines.append(same(f"(int)TT_PJRT_VALUE_{mine}", f"(int)PJRT_NamedValue_{other}", other))
    for mine, other in EXTENSIONS.items():
        lines.append(
            same(f"(int)TT_PJRT_EXTENSION_{mine}", f"(int)PJRT_Extension_Type_{other}", other)
        )
    compile_asserts(lines, tmp_path)
