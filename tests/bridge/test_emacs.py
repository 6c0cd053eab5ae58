"""A real Emacs follows what agents do in other processes, and loses no unsaved text unasked."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ringfence.toolkit.cli.commands.bridge import LISP
from tests.bridge.conftest import Emacs, Place, wait


def settled(place: Place, emacs: Emacs) -> None:
    """Wait until all that was done so far has reached the buffers: a change after it has."""
    mark = place.write("mark.txt", "before\n")
    emacs.open(mark)
    place.call("edit_file", path="mark.txt", old_str="before", new_str="after")
    wait(lambda: emacs.text(mark) == "after\n")


def test_the_buffer_of_a_deleted_file_is_closed(place: Place, emacs: Emacs) -> None:
    gone, other = place.write("src/gone.lisp", "(a)\n"), place.write("src/other.lisp", "(b)\n")
    emacs.open(gone)
    emacs.open(other)
    place.call("delete", path="src/gone.lisp")
    wait(lambda: emacs.text(gone) is None)
    assert emacs.text(other) == "(b)\n"
    assert emacs.asked == []


def test_the_buffers_of_a_deleted_tree_are_closed(place: Place, emacs: Emacs) -> None:
    files = [place.write(f"build/{name}", "x\n") for name in ("a", "deep/b")]
    for file in files:
        emacs.open(file)
    place.call("delete", path="build")
    wait(lambda: [emacs.text(file) for file in files] == [None, None])


def test_unsaved_text_of_a_deleted_file_is_kept_on_no(place: Place, emacs: Emacs) -> None:
    file = place.write("notes.txt", "one\n")
    emacs.open(file)
    emacs.type(file, "two\n")
    emacs.will_say(yes=False)
    place.call("delete", path="notes.txt")
    (question,) = wait(lambda: emacs.asked)
    assert "coder deleted" in question
    assert "notes.txt" in question
    settled(place, emacs)
    assert emacs.text(file) == "one\ntwo\n"
    assert emacs.is_modified(file)


def test_unsaved_text_of_a_deleted_file_goes_on_yes(place: Place, emacs: Emacs) -> None:
    file = place.write("notes.txt", "one\n")
    emacs.open(file)
    emacs.type(file, "two\n")
    emacs.will_say(yes=True)
    place.call("delete", path="notes.txt")
    wait(lambda: emacs.text(file) is None)
    assert len(emacs.asked) == 1


def test_to_quit_a_question_is_a_no_to_it_alone(place: Place, emacs: Emacs) -> None:
    """What arrived together with it is still dealt with."""
    first, last = place.write("build/a", "one\n"), place.write("build/b", "two\n")
    emacs.open(first)
    emacs.open(last)
    emacs.type(first, "mine\n")
    emacs.will_quit()
    place.call("delete", path="build")
    wait(lambda: emacs.asked)
    settled(place, emacs)
    assert (emacs.text(first), emacs.text(last)) == ("one\nmine\n", None)


def test_a_changed_file_is_read_again(place: Place, emacs: Emacs) -> None:
    file = place.write("a.txt", "one\n")
    emacs.open(file)
    place.call("edit_file", path="a.txt", old_str="one", new_str="two")
    wait(lambda: emacs.text(file) == "two\n")
    assert not emacs.is_modified(file)
    assert emacs.asked == []


@pytest.mark.parametrize("yes", [False, True])
def test_unsaved_text_of_a_changed_file_is_asked_about(place: Place, emacs: Emacs, yes: bool) -> None:
    file = place.write("a.txt", "one\n")
    emacs.open(file)
    emacs.type(file, "mine\n")
    emacs.will_say(yes=yes)
    place.call("edit_file", path="a.txt", old_str="one", new_str="two")
    wait(lambda: emacs.asked)
    settled(place, emacs)
    assert emacs.text(file) == ("two\n" if yes else "one\nmine\n")
    assert emacs.is_modified(file) is not yes
    assert file.read_text() == "two\n"


def test_a_file_that_was_opened_before_it_was_there_is_read(place: Place, emacs: Emacs) -> None:
    file = place.root / "new.txt"
    emacs.open(file)
    place.call("create_file", path="new.txt", content="hello\n")
    wait(lambda: emacs.text(file) == "hello\n")


def test_a_buffer_moves_with_its_file_and_keeps_unsaved_text(place: Place, emacs: Emacs) -> None:
    old, new = place.write("old.txt", "one\n"), place.root / "sub" / "new.txt"
    emacs.open(old)
    emacs.type(old, "mine\n")
    place.call("move_file", source="old.txt", destination="sub/new.txt")
    wait(lambda: emacs.text(new) == "one\nmine\n")
    assert emacs.text(old) is None
    assert emacs.is_modified(new)
    assert emacs.asked == []
    assert emacs.eval(f'(with-current-buffer (find-buffer-visiting "{new}") (point))') == "10"
    # It can be saved there: for Emacs it is the file that the buffer was read from.
    emacs.eval(f'(with-current-buffer (find-buffer-visiting "{new}") (save-buffer) t)')
    assert new.read_text() == "one\nmine\n"
    assert emacs.asked == []


def test_a_move_into_another_mode_asks_nothing_about_variables(place: Place, emacs: Emacs) -> None:
    text = 'one\n;; Local Variables:\n;; eval: (setq asked \'("ran"))\n;; surprise: 1\n;; End:\n'
    old, new = place.write("a.txt", text), place.root / "a.el"
    emacs.eval(
        "(progn (fset 'hack-local-variables-confirm (lambda (&rest _)"
        ' (setq asked (cons "variables" asked)) nil)) t)'
    )
    emacs.open(old)
    assert emacs.asked == ["variables"]  # the user opened it, and is asked once
    emacs.eval("(setq asked nil)")
    place.call("move_file", source="a.txt", destination="a.el")
    wait(lambda: emacs.text(new) == text)
    assert emacs.eval(f'(buffer-local-value (quote major-mode) (find-buffer-visiting "{new}"))') in (
        "emacs-lisp-mode",
        "elisp-mode",
    )
    assert emacs.asked == []


def test_the_buffers_below_a_moved_folder_move_along(place: Place, emacs: Emacs) -> None:
    old = place.write("a/deep/f.txt", "one\n")
    emacs.open(old)
    place.call("move_file", source="a", destination="b")
    wait(lambda: emacs.text(place.root / "b/deep/f.txt") == "one\n")


def test_a_file_moved_over_one_with_unsaved_text_leaves_both_buffers(place: Place, emacs: Emacs) -> None:
    old, new = place.write("old.txt", "one\n"), place.write("new.txt", "two\n")
    emacs.open(old)
    emacs.open(new)
    emacs.type(new, "mine\n")
    emacs.will_quit()
    place.call("move_file", source="old.txt", destination="new.txt", allow_overwrite=True)
    (question,) = wait(lambda: emacs.asked)
    assert "moved another file to" in question
    settled(place, emacs)
    texts = "(mapcar (lambda (b) (with-current-buffer b (buffer-string))) (buffer-list))"
    held = json.loads(json.loads(emacs.eval(f"(json-encode (vconcat {texts}))")))
    assert {"one\n", "two\nmine\n"} <= set(held)
    assert emacs.text(old) is None


def test_what_comes_back_is_read_again(place: Place, emacs: Emacs) -> None:
    file = place.write("a.txt", "one\n")
    emacs.open(file)
    call = place.call("edit_file", path="a.txt", old_str="one", new_str="two")
    wait(lambda: emacs.text(file) == "two\n")
    place.run("undo", call, "--yes")
    wait(lambda: emacs.text(file) == "one\n")


def test_the_mode_ends_its_process(place: Place, emacs: Emacs) -> None:
    running = '(and (get-process "ringfence") t)'
    assert emacs.eval(running) == "t"
    emacs.eval("(ringfence-mode -1)")
    assert emacs.eval(running) == "nil"


def test_the_mode_says_when_it_cannot_follow(place: Place, emacs: Emacs) -> None:
    emacs.eval('(progn (setq ringfence-program (list "/nowhere/ringfence")) (ringfence-mode 1))')
    wait(lambda: emacs.eval("(and ringfence-mode t)") == "nil")  # Emacs may learn of it a moment later
    emacs.eval('(progn (setq ringfence-program (list "false")) (ringfence-mode 1))')
    wait(lambda: emacs.eval("(and ringfence-mode t)") == "nil")


def test_the_file_compiles_without_a_warning(tmp_path: Path) -> None:
    if shutil.which("emacs") is None:
        pytest.skip("no Emacs: apt-get install emacs-nox")
    shutil.copy(LISP, tmp_path)
    strict = "(setq byte-compile-error-on-warn t)"
    done = subprocess.run(
        ["emacs", "-Q", "--batch", "--eval", strict, "-f", "batch-byte-compile", tmp_path / LISP.name],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
