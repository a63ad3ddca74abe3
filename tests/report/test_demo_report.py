"""``linkwise demo`` writes a report and says where it is."""

import json
import re
from pathlib import Path

from linkwise.cli import main


def test_demo_writes_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    path = Path(facts["report"])
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 6_000_000
    for words in (
        "Torques",
        "Do the algorithms agree?",
        "Operations",
        "Time per evaluation",
        "Tracking",
        "Kozłowski",
    ):
        assert words in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text), "the page works offline"
    assert (path.parent / "figures" / "torques.svg").exists()
