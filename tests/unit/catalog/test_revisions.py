"""Revisions of the user's own code: how targets name them, and what is read of a repository that is not trusted."""

import os
from pathlib import Path

import pytest

from orchestrator.catalog import changed, git, revisions
from orchestrator.catalog import workloads as suites
from orchestrator.catalog.revisions import check_revisions, copy_revision, find_commits, open_revision, pin_revisions
from orchestrator.catalog.targets import is_plain, parse_target, split_targets
from orchestrator.errors import UsageError
from orchestrator.model import Case
from tests.support import repository

FIRST = "def build(tf, params):\n    return lambda: 1\n"
SIZED = 'PARAMS = {"size": ("1", "2")}\n' + FIRST
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A workload folder inside of a repository, with a tag `v1` and a change since."""
    root = repository.begin(tmp_path / "project")
    repository.commit(root, {"mine/step.py": FIRST, "other.txt": "not of the workloads"}, "v1")
    repository.commit(root, {"mine/step.py": SIZED}, "v2")
    return root / "mine"


def test_a_target_names_a_revision_and_its_commit():
    target = parse_target(f"2.20 TF_X=1 @feature/x={COMMIT} as old")
    assert (target.revision, target.commit, target.name) == ("feature/x", COMMIT, "old")
    assert str(target) == f"2.20 TF_X=1 @feature/x={COMMIT} as old"
    assert parse_target("2.20 @v1").build_name("2.20.0") == "2.20.0@v1"
    assert parse_target(f"2.20 keras==3.8.0 @{COMMIT}").build_name("2.20.0") == "2.20.0+keras==3.8.0@0123456789ab"
    assert not is_plain("2.20 @v1")
    assert split_targets(["2.20 @v1", "2.8,2.9"]) == ("2.20 @v1", "2.8", "2.9")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@main", "it begins with @main, and not with a version"),
        ("2.20 @", "@ names no revision of your code"),
        ("2.20 @--upload-pack=x", "names no revision of your code: after '@' comes a branch, a tag or a commit"),
        ("2.20 '@a b'", "names no revision"),
        ("2.20 '@{-1}'", "names no revision"),
        ("2.20 @main=0123", "names no revision"),
        ("2.20 @v1 @v2", "two revisions of your code"),
        ("2.20 @feature/x", "its name does not suit tables and file names; add `as` and a short name"),
    ],
)
def test_what_names_no_revision_is_refused(text: str, message: str):
    with pytest.raises(UsageError) as error:
        parse_target(text)
    assert message in str(error.value)


def test_a_revision_becomes_the_commit_that_it_is_now(own: Path):
    texts = pin_revisions(["2.20", "2.20 @v1", "2.20 @HEAD"], own)
    first, second = (repository.git(own, "rev-parse", name) for name in ("v1", "HEAD"))
    assert texts == ("2.20", f"2.20 @v1={first}", f"2.20 @HEAD={second}")
    assert find_commits(texts[1:]) == {"2.20@v1": first, "2.20@HEAD": second}
    repository.commit(own, {"step.py": "raise\n"})
    assert pin_revisions(texts, own) == texts


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda own: None, "@v1 is a revision of your code, and no workload of yours is measured"),
        (lambda own: own.parent.parent, "is in no repository that git can read: not a git repository"),
        (lambda own: own, "the repository of .* has no commit named gone; `git -C"),
    ],
)
def test_a_revision_that_does_not_exist_is_told(own: Path, make, message: str):
    name = "gone" if "gone" in message else "v1"
    with pytest.raises(UsageError, match=message):
        pin_revisions([f"2.20 @{name}"], make(own))


def test_without_git_it_says_what_to_install(own: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UsageError, match="in no repository that git can read: git is not on PATH: install it"):
        pin_revisions(["2.20 @v1"], own)


def test_a_copy_has_the_folder_of_then_and_nothing_beside_it(own: Path, tmp_path: Path):
    (own / "run.sh").write_text("#!/bin/sh\n")
    (own / "run.sh").chmod(0o755)
    (own / "link.py").symlink_to("step.py")
    commit = repository.commit(own, {})
    (own / "step.py").write_text("changed meanwhile\n")
    copy = copy_revision(own, commit, tmp_path / "copy")
    assert copy == tmp_path / "copy" / f"@{commit[:12]}"
    assert sorted(path.name for path in copy.iterdir()) == ["link.py", "run.sh", "step.py"]
    assert (copy / "step.py").read_text() == (copy / "link.py").read_text() == SIZED
    assert not (copy / "link.py").is_symlink()
    assert os.access(copy / "run.sh", os.X_OK)


def test_the_copy_of_a_run_has_its_revisions_already(own: Path, tmp_path: Path):
    commit = repository.git(own, "rev-parse", "v1")
    kept = copy_revision(own, commit, tmp_path / "copy")
    with open_revision(tmp_path / "copy", commit) as code:
        assert code == kept
    assert copy_revision(tmp_path / "copy", commit, tmp_path / "copy") == kept
    assert (kept / "step.py").read_text() == FIRST


def test_a_folder_that_poses_as_a_revision_is_replaced(own: Path, tmp_path: Path):
    commit = repository.git(own, "rev-parse", "v1")
    posing = tmp_path / "copy" / f"@{commit[:12]}"
    posing.mkdir(parents=True)
    (posing / "step.py").write_text("import time\n" + FIRST)
    (own / posing.name).mkdir()
    (own / posing.name / "step.py").write_text("import time\n" + FIRST)
    assert (copy_revision(own, commit, tmp_path / "copy") / "step.py").read_text() == FIRST


def test_nothing_that_a_repository_names_is_run(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ran = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o755)
    commit = repository.commit(own, {".gitattributes": "*.py filter=evil export-ignore diff=evil\n"})
    hooks = own.parent / ".git" / "hooks"
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / hook).write_text(script.read_text())
        (hooks / hook).chmod(0o755)
    for name in ("core.fsmonitor", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "core.pager",
                 "core.sshCommand", "core.askPass", "tar.tar.command", "uploadpack.packObjectsHook"):  # fmt: skip
        repository.git(own, "config", name, str(script))
    repository.git(own, "config", "alias.cat-file", f"!{script}")
    # Whoever calls this may have another repository in mind.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(script))
    [text] = pin_revisions(["2.20 @HEAD"], own)
    assert commit in text
    copy = copy_revision(own, commit, tmp_path / "copy")
    assert (copy / "step.py").read_text() == SIZED
    assert not ran.exists()


def test_a_partial_clone_fetches_nothing(own: Path, tmp_path: Path):
    ran = tmp_path / "ran"
    digest = repository.git(own, "rev-parse", "v1:mine/step.py")
    commit = repository.git(own, "rev-parse", "v1")
    (own.parent / ".git" / "objects" / digest[:2] / digest[2:]).unlink()
    for name, value in (("remote.origin.promisor", "true"), ("remote.origin.url", f"ext::touch {ran}"),
                        ("protocol.ext.allow", "always"), ("extensions.partialClone", "origin")):  # fmt: skip
        repository.git(own, "config", name, value)
    with pytest.raises(UsageError, match="cannot be used"):
        copy_revision(own, commit, tmp_path / "copy")
    assert not ran.exists()


@pytest.mark.parametrize("name", ["..", ".", ""])
def test_a_commit_whose_names_leave_the_folder_is_refused(own: Path, tmp_path: Path, name: str):
    blob = repository.git(own, "hash-object", "-w", "--stdin", stdin=b"evil")
    inner = f"100644 {name}\0".encode() + bytes.fromhex(blob)
    tree = repository.git(own, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=inner)
    outer = b"40000 mine\0" + bytes.fromhex(tree)
    root = repository.git(own, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=outer)
    commit = repository.git(own, "commit-tree", root, "-m", "evil")
    with pytest.raises(UsageError, match=r"it has an entry that no file may have|cannot be used"):
        copy_revision(own, commit, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_no_file_is_written_through_a_link(own: Path, tmp_path: Path):
    blob = repository.git(own, "hash-object", "-w", "--stdin", stdin=b"evil")
    link = repository.git(own, "hash-object", "-w", "--stdin", stdin=str(tmp_path / "outside").encode())
    inner = repository.git(own, "mktree", stdin=f"100644 blob {blob}\tfile\n".encode())
    both = b"120000 a\0" + bytes.fromhex(link) + b"40000 a\0" + bytes.fromhex(inner)
    tree = repository.git(own, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=both)
    root = repository.git(own, "mktree", stdin=f"040000 tree {tree}\tmine\n".encode())
    commit = repository.git(own, "commit-tree", root, "-m", "evil")
    (tmp_path / "outside").mkdir()
    with pytest.raises(UsageError, match="cannot be used"):
        copy_revision(own, commit, tmp_path / "copy")
    assert not list((tmp_path / "outside").iterdir())


def test_a_link_out_of_the_folder_is_refused(own: Path, tmp_path: Path):
    (own / "secret").symlink_to("/etc/hostname")
    commit = repository.commit(own, {})
    with pytest.raises(UsageError, match="secret is a link to '/etc/hostname'"):
        copy_revision(own, commit, tmp_path / "copy")


def test_a_commit_that_is_too_large_is_refused_before_it_is_written(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    commit = repository.git(own, "rev-parse", "v1")
    monkeypatch.setattr(git, "MOST_MB", 0)
    with pytest.raises(UsageError, match="more than 20000 files or 0 MB; keep data out of the repository"):
        copy_revision(own, commit, tmp_path / "copy")


def check(own: Path, ref: str, *params: str, words: tuple[str, ...] = ()) -> None:
    [text] = pin_revisions([f"2.20 @{ref} as then"], own)
    version = changed.find_changed(text, "cpu")
    workload = suites.read_workload(own / "step.py", builtin=False)
    cases = [Case("step", (("size", value),) if value else ()) for value in params]
    check_revisions([version], own, {"step": workload}, cases, words)


def test_a_revision_has_the_cases_that_are_measured(own: Path):
    check(own, "v2", "1", "2")
    with pytest.raises(UsageError, match=r"target then: .*mine at [0-9a-f]{12}/step.py has no case step\[size=1\]"):
        check(own, "v1", "1")
    with pytest.raises(UsageError, match=r"has no case step\[size=3\]"):
        check(own, "v2", "3")


@pytest.mark.parametrize(
    ("then", "message"),
    [
        ({"step.py": SIZED + "REQUIREMENTS = ('pandas',)\n"}, "its REQUIREMENTS are others than now"),
        ({"step.py": SIZED + "DATA = {'words': '.'}\n"}, "its DATA names more than now"),
        ({"step.py": SIZED + "def broken(:\n"}, "step.py: cannot be read as Python"),
        ({"step.py": "x = 1\n"}, "a workload needs a function build"),
    ],
)
def test_a_revision_that_cannot_be_measured_is_told_by_its_commit(own: Path, then: dict[str, str], message: str):
    commit = repository.commit(own, then)
    repository.commit(own, {"step.py": SIZED})
    with pytest.raises(UsageError, match=message) as error:
        check(own, "HEAD~1", "1")
    assert f"mine at {commit[:12]}" in str(error.value)
    assert "/tmp" not in str(error.value).replace(str(own), "")


def test_a_file_that_was_not_there_yet_is_told(own: Path):
    repository.commit(own, {"late.py": "print()\n"})
    with pytest.raises(UsageError, match=r"there is no late.py"):
        check(own, "v1", words=("python", "late.py"))
    check(own, "HEAD", words=("python", "late.py"))


def test_without_a_workload_of_the_user_there_is_no_revision(own: Path):
    version = changed.find_changed(pin_revisions(["2.20 @v1"], own)[0], "cpu")
    with pytest.raises(UsageError, match="no workload of yours is measured, and so no revision of it"):
        check_revisions([version], own, {}, [], ())


def test_a_folder_with_another_name_is_part_of_the_code(own: Path):
    workload = suites.read_workload(own / "step.py", builtin=False)
    (own / "@home").mkdir()
    (own / "@home" / "notes.txt").write_text("next to it")
    assert "workloads/@home/notes.txt" in suites.source_hashes([workload])


def test_the_sources_of_a_run_name_each_revision_once(own: Path, tmp_path: Path):
    workload = suites.read_workload(own / "step.py", builtin=False)
    before = suites.source_hashes([workload])
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "step.py").write_text(SIZED)
    commit = repository.commit(own, {"notes.txt": "next to it"})
    copy_revision(own, commit, tmp_path / "copy")
    copied = suites.read_workload(tmp_path / "copy" / "step.py", builtin=False)
    after = suites.source_hashes([copied])
    name = revisions.name_folder(commit)
    assert {**before, name: after[name]} == after
    (tmp_path / "copy" / name / "notes.txt").write_text("changed")
    assert suites.source_hashes([copied])[name] != after[name]
