"""Reading XML so that a file can neither do harm nor fail without saying where."""

import time
import warnings

import pytest

from linkwise.errors import ModelError, ModelWarning
from linkwise.formats import xml
from linkwise.formats.xml import parse_xml, root_tag


def strict(data: bytes) -> xml.Element:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return parse_xml(data, "arm.urdf")


def test_elements_know_where_they_stand():
    root = strict(b'<robot name="r">\n  <joint name="elbow">\n    <origin/>\n  </joint>\n  <limit/></robot>')
    joint, limit = root
    assert (root.line, joint.line, joint[0].line) == (1, 2, 3)
    assert joint[0].describe() == '<origin> of <joint name="elbow">'
    assert limit.describe() == "<limit>"
    assert str(joint[0].error("why")) == 'arm.urdf:3: <origin> of <joint name="elbow">: why'


@pytest.mark.parametrize(
    "data",
    [
        b"<a/>",
        b"\xef\xbb\xbf<a/>",
        b"\xef\xbb\xbf<?xml version='1.0'?><a/>",
        b"\n<!-- -->\n<a/>",
        b"<?xml version='1.0' encoding='utf8'?><a/>",
        "<?xml version='1.0' encoding='latin-1'?><a b='é'/>".encode("latin-1"),
        "<?xml version='1.0' encoding='utf-16'?><a b='é'/>".encode("utf-16"),
        b"<a xmlns='urn:x' xmlns:xacro='y' sensor:b='1'><!-- <b/> --></a>",
    ],
)
def test_good_files_give_no_warning(data):
    root = strict(data)
    assert root.tag == "a"
    assert list(root) == []
    assert root.get("b") in (None, "é")


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"\n \n<?xml version='1.0'?>\n<a>\n<b/></a>", 5, "before the"),
        (b"<!-- x\n -- -->\n<?xml version='1.0'?><a>\n<b/></a>", 4, "before the"),
        (b"\xef\xbb\xbf\n<?xml version='1.0'?><a>\n<b/></a>", 3, "before the"),
        (b"<?xml verison='1.0'?><a>\n<b/></a>", 2, "misspelt"),
        (b"<a><!-- one -- \n two ---><b/></a>", 2, "'--'"),
        ("<a><!-- é -->\n<b/></a>".encode("latin-1"), 2, "Latin-1"),
        ("<?xml version='1.0' encoding='UTF-8'?><a><!-- é -->\n<b/></a>".encode("latin-1"), 2, "Latin-1"),
    ],
)
def test_common_faults_are_repaired_with_a_warning(data, line, message):
    with pytest.warns(ModelWarning, match=message) as caught:
        root = parse_xml(data, "arm.urdf")
    assert all(str(w.message).startswith("arm.urdf: ") for w in caught)
    assert [(child.tag, child.line) for child in root] == [("b", line)]


def test_a_repaired_file_may_have_another_fault():
    with pytest.raises(
        ModelError, match=r"arm\.urdf:3:\d+: .*mismatched tag \(<b> of line 3 is still open\)"
    ):
        parse_xml(b"<?xml verison='1.0'?>\n<a>\n<b></a>", "arm.urdf")


def test_deciding_who_reads_a_file_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert root_tag(b"\n<?xml verison='1.0'?><mujoco/>", "arm.xml") == "mujoco"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"hello", "syntax error"),
        (b"\x00\x01\x02", "not well-formed"),
        (bytes(range(128, 256)), "not well-formed"),
        (b"<a>", "no element found.*<a> of line 1 is still open"),
        (b"<a>\n<b></a>", "mismatched tag.*<b> of line 2"),
        (b"<a/><b/>", "junk after document element"),
        (b"<a x='1' x='2'/>", "duplicate attribute"),
        (b"<a x=1/>", "invalid token"),
        (b"<a>&nbsp;</a>", "undefined entity"),
        (b"<a x='&#0;'/>", "invalid character"),
        (b"<a><!-- </a>", "not well-formed"),
        (b"<?xml version='1.0' encoding='klingon'?><a/>", "unknown encoding"),
        (b"<?xml version='1.0' encoding='gbk'?><a/>", "encoding"),
    ],
)
def test_what_is_no_xml_is_an_error_that_says_why(data, message):
    with pytest.raises(ModelError, match=rf"(?s)^arm\.urdf.*{message}"):
        parse_xml(data, "arm.urdf")


BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE robot [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<robot name="&c;"/>"""
QUADRATIC_BOMB = b'<!DOCTYPE r [<!ENTITY a "' + b"x" * 50_000 + b'">]><r>' + b"&a;" * 5000 + b"</r>"
EXTERNAL = b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><r>&a;</r>'
EXTERNAL_DTD = b'<!DOCTYPE r SYSTEM "http://example.invalid/r.dtd"><r/>'
PARAMETER_ENTITY = b'<!DOCTYPE r [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><r/>'


@pytest.mark.parametrize(
    "data", [BOMB, QUADRATIC_BOMB, EXTERNAL, EXTERNAL_DTD, PARAMETER_ENTITY, b"<!DOCTYPE r><r/>"]
)
@pytest.mark.parametrize("before", [b"", b"\n", b"<!-- -- -->"])
def test_document_types_and_entities_are_refused(data, before):
    """Also when a repair is tried first."""
    start = time.thread_time()
    with pytest.raises(ModelError, match=r"^arm\.urdf.* not allowed"):
        parse_xml(before + data, "arm.urdf")
    assert time.thread_time() - start < 5


def test_depth_and_number_of_elements_are_limited(monkeypatch):
    with pytest.raises(ModelError, match=r"nested more than 250 levels"):
        parse_xml(b"<a>" * 100_000, "arm.urdf")
    monkeypatch.setattr(xml, "MAX_ELEMENTS", 1000)
    with pytest.raises(ModelError, match=r"more than 1000 elements"):
        parse_xml(b"<a>" + b"<b/>" * 1001 + b"</a>", "arm.urdf")
    monkeypatch.setattr(xml, "MAX_BYTES", 1000)
    with pytest.raises(ModelError, match=r"1001 bytes is more than"):
        parse_xml(b" " * 997 + b"<a/>", "arm.urdf")


@pytest.mark.parametrize(
    "data",
    [
        b" " * 1_000_000 + b"<a",
        b"<a>" + b"<!--" * 300_000,
        b"<!-- -->" * 100_000 + b"<a",
        b"<!--" + b"-" * 1_000_000,
    ],
)
def test_repairs_take_linear_time(data):
    start = time.thread_time()
    with pytest.raises(ModelError):
        parse_xml(data, "arm.urdf")
    assert time.thread_time() - start < 10


def test_numbers():
    element = strict(b"<a x=' 1\t-2.5\n+.5 3.  1e-3 '/>")
    assert element.numbers("x", 5) == (1.0, -2.5, 0.5, 3.0, 1e-3)
    assert element.number("y", 7.0) == 7.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("1 2", "expected 3 numbers, got 2"),
        ("1 2 3 4", "expected 3 numbers, got 4"),
        ("1,2,3", "'1,2,3' is not a finite number"),
        ("0x1 0 0", "'0x1' is not a finite number"),
        ("1_0 0 0", "'1_0' is not a finite number"),
        ("nan 0 0", "'nan' is not a finite number"),
        ("0 inf 0", "'inf' is not a finite number"),
        ("0 0 -Infinity", "is not a finite number"),
        ("1e999 0 0", "too large"),
        ("1.5.0 0 0", "'1.5.0' is not a finite number"),
        ("1e 0 0", "'1e' is not a finite number"),
        ("1d0 0 0", "'1d0' is not a finite number"),
        ("٣ 0 0", "is not a finite number"),
        ("${x} 0 0", "run xacro"),
        ("$(arg x) 0 0", "run xacro"),
    ],
)
def test_bad_numbers_name_the_element_the_attribute_and_the_text(text, message):
    element = strict(f'<r><j name="elbow"><origin xyz="{text}"/></j></r>'.encode())[0][0]
    with pytest.raises(ModelError) as caught:
        element.numbers("xyz", 3)
    words = str(caught.value)
    assert words.startswith('arm.urdf:1: <origin> of <j name="elbow">: ')
    assert message in words
    assert "xyz" in words
