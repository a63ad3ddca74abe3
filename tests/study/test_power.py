"""A loss of power at any moment: what is left is resumed to the same bytes.

The writes, renames and synchronisations of a run are recorded. After each of them, names that were not synchronised
may be there or not, and bytes that were not synchronised may be there, torn, zeros or missing.
"""

import shutil
import warnings

from faults import TINY, Quick, Recorder, laid_out
from stores import contents

import linkwise as lw
from linkwise.study.errors import StudyWarning
from linkwise.study.store import files
from linkwise.study.store.verify import verify

TINIER = {**TINY, "samples": 100, "chunk": 64}


def recorded(study, folder, monkeypatch, every=1, **options):
    """The states of a run into ``folder/store``."""
    recorder = Recorder(folder, every)
    monkeypatch.setattr(files, "disk", recorder)
    study.run(folder / "store", progress=False, threads=1, **options)
    monkeypatch.setattr(files, "disk", Quick())
    return recorder


def checked(study, state, folder, expected):
    """Resume what a loss of power left."""
    folder.mkdir()
    laid_out(state, folder)
    store = folder / "store"
    if store.exists():
        damage = [damage for damage in verify(store).damage if damage.file != "journal"]
        assert not damage, "the journal tells of nothing that is not on the disk"
        if not (store / "journal").exists():
            assert contents(store) == expected, "what says that it is complete is complete"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StudyWarning)
        study.run(store, resume=store.exists(), progress=False, threads=1)
    assert contents(store) == expected
    assert [path.name for path in folder.iterdir()] == ["store"], "what was left of a start is gone"
    shutil.rmtree(folder)


def test_a_loss_of_power_at_any_moment(tmp_path, monkeypatch):
    study = lw.study(TINIER)
    (tmp_path / "first").mkdir()
    recorder = recorded(study, tmp_path / "first", monkeypatch, every=5)
    expected = contents(tmp_path / "first" / "store")
    assert recorder.operations > 100
    states = list(recorder.states.values())
    assert len(states) > 50
    for number, state in enumerate(states[::3]):
        checked(study, state, tmp_path / f"state{number}", expected)


def test_a_run_that_leaves_points_out(tmp_path, monkeypatch):
    """Its journal is written anew at the end: it is never lost."""
    from test_attempts import tables

    study = lw.study(tables([7], points=40, chunk=16))
    (tmp_path / "first").mkdir()
    recorder = recorded(study, tmp_path / "first", monkeypatch, every=1)
    expected = contents(tmp_path / "first" / "store")
    for number, state in enumerate(list(recorder.states.values())[-40::4]):
        assert state["store/journal"]
        checked(study, state, tmp_path / f"state{number}", expected)


def test_the_order_is_what_the_test_finds(tmp_path, monkeypatch):
    """Without the synchronisation of folders the journal tells of files that are not there."""
    study = lw.study(TINIER)
    (tmp_path / "first").mkdir()
    monkeypatch.setattr(files.Folder, "sync", lambda *_: None)
    recorder = recorded(study, tmp_path / "first", monkeypatch)
    wrong = 0
    for number, state in enumerate(list(recorder.states.values())[::-7]):
        laid_out(state, (folder := tmp_path / f"state{number}").mkdir() or folder)
        store = folder / "store"
        wrong += store.exists() and any(damage.file != "journal" for damage in verify(store).damage)
    assert wrong
