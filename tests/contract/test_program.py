"""A worker runs a program of the user's: in a scratch folder, with its own Python, and says what each run took."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pytest

from orchestrator import contract
from orchestrator.engines.worker.client import Burst, Closed, Died, Opened, Refused
from orchestrator.results.streams import read_stream
from tests.support import keras, stub
from tests.support.bench import Bench
from tests.support.live_runs import mount_read_only


class Project:
    """The folder of a program, and a worker that runs it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.folder = bench.workloads

    def write(self, name: str, source: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))

    def open(
        self, *words: str, timeout_s: float = 60.0, large: Sequence[str] = ()
    ) -> tuple[int, Opened | Refused | Died]:
        return self.bench.open(" ".join(words), program=words, timeout_s=timeout_s, large=large)

    def run(self, *words: str, timeout_s: float = 60.0, large: Sequence[str] = ()) -> Burst | Died:
        """Run a program once; its replicate is closed if it has not died."""
        number, opened = self.open(*words, large=large)
        assert isinstance(opened, Opened), opened
        burst = self.bench.burst(number, 1, timeout_s)
        if isinstance(burst, Burst):
            # Its build, which is nothing, and its run.
            assert self.bench.close(number) == Closed(rows=2)
        return burst

    def facts(self) -> dict[str, object]:
        """Return what the stream has of the last replicate."""
        assert self.bench.client.quit()
        table, cut = read_stream(self.bench.stream)
        assert not cut
        rows: list[dict[str, object]] = table.to_pylist()
        return next(row for row in reversed(rows) if row["phase"] == "build")


@pytest.fixture
def project(bench: Bench) -> Project:
    return Project(bench)


@pytest.fixture(scope="module")
def lasting(veteran: Bench) -> Project:
    return Project(veteran)


def test_a_program_is_timed_from_its_start_to_its_end(project: Project):
    project.write("work.py", "import time\ntime.sleep(0.3)\nsum(range(3_000_000))\nheld = bytearray(150 * 2 ** 20)\n")
    burst = project.run("python", "work.py")
    assert isinstance(burst, Burst)
    assert len(burst.walls_ns) == 1
    assert burst.walls_ns[0] > 0.3e9
    assert 0 < burst.cpu_ns < burst.walls_ns[0]
    facts = project.facts()
    assert 150 * 2**10 < int(str(facts["resident_kb"])) < 250 * 2**10
    assert (facts["calls"], facts["traces"], facts["step_ns"], facts["losses"]) == (1, None, None, None)


def test_it_sees_its_project_and_writes_elsewhere(lasting: Project):
    lasting.write("helpers/__init__.py", "WORD = 'helped'\n")
    lasting.write("data/numbers.txt", "1 2 3")
    source = """
        import os, sys
        import helpers
        assert helpers.WORD == 'helped'
        assert open('data/numbers.txt').read() == '1 2 3'
        assert sys.argv[1:] == ['--epochs', '1']
        assert sys.stdin.read() == ''
        os.mkdir('checkpoints')
        open('checkpoints/weights', 'w').write('heavy')
        open('out.csv', 'w').write('1')
        print(os.getcwd())
        """
    lasting.write("train.py", source)
    before = sorted(path.name for path in lasting.folder.iterdir())
    for _ in range(2):
        # Each run begins with an empty folder.
        assert isinstance(lasting.run("python", "train.py", "--epochs", "1"), Burst)
    assert sorted(path.name for path in lasting.folder.iterdir()) == before
    place = lasting.bench.log.read_text().strip().splitlines()[-1]
    assert not Path(place).exists()


def test_a_run_finds_nothing_that_an_earlier_run_wrote_into_the_project(lasting: Project):
    for name in ("model.h5", "logs/train.log", "inner/deep/model.h5", "large/data.bin"):
        lasting.write(name, "of the project")
    (lasting.folder / "empty").mkdir()
    source = """
        import os
        for name in ("model.h5", "logs/train.log", "inner/deep/model.h5", "large/data.bin"):
            assert open(name).read() == "of the project", name
        assert os.listdir("empty") == []
        for name in ("model.h5", "logs/train.log", "inner/deep/model.h5", "empty/model.h5", "large/more.bin", "new"):
            with open(name, "a") as file:
                file.write("of a run")
        os.remove("logs/train.log")
        assert os.path.realpath("large/data.bin") == {large!r}
        """
    lasting.write("trains.py", source.format(large=str((lasting.folder / "large" / "data.bin").resolve())))
    before = read_files(lasting.folder)
    for large in ("large/data.bin", "large/data.bin", "large"):
        ran = lasting.run("python", "trains.py", large=[large])
        assert isinstance(ran, Burst), ran
        assert read_files(lasting.folder) == before


@pytest.mark.parametrize("change", ["open('model.bin', 'a').write('x')", "os.remove(os.path.realpath('model.bin'))"])
def test_a_run_that_changes_a_large_file_dies_and_says_why(project: Project, change: str):
    """It is linked, so the next run would find the change."""
    project.write("model.bin", "heavy")
    project.write("train.py", f"import os\nassert open('model.bin').read() == 'heavy'\n{change}\n")
    died = project.run("python", "train.py", large=["model.bin"])
    assert isinstance(died, Died)
    assert died.reason == (
        "model.bin was changed in place, for large files and data are not copied: write another file"
    )
    project.write("model.bin", "heavy")
    project.write("train.py", "open('model.bin').read()\nopen('another.bin', 'w').write('heavy')\n")
    assert isinstance(project.run("python", "train.py", large=["model.bin"]), Burst)


DATA_CHANGES = {
    "a file": ("open('more.csv', 'a').write('5')", "more.csv"),
    "a file at the top of a folder": ("open('datasets/digits.csv', 'a').write('5')", "~/.keras/datasets/digits.csv"),
    "a file deep in a folder": ("open('datasets/a/b/deep.csv', 'w').write('5')", "~/.keras/datasets/a/b/deep.csv"),
    "a new file": ("open('datasets/a/b/cache', 'w').write('5')", "~/.keras/datasets/a/b/cache"),
    "a removed file": ("os.remove('datasets/a/b/deep.csv')", "~/.keras/datasets/a/b/deep.csv"),
}


@pytest.mark.parametrize(("change", "name"), DATA_CHANGES.values(), ids=DATA_CHANGES)
def test_a_run_that_changes_its_data_dies_and_names_the_file(project: Project, change: str, name: str):
    datasets = project.folder / contract.DATA / "home/.keras/datasets"
    write_data(project)
    # As without mounts: the data are somewhere else.
    elsewhere = project.folder.parent / "elsewhere"
    datasets.rename(elsewhere)
    datasets.symlink_to(elsewhere)
    data = [f"{contract.DATA}/{name}" for name in ("home/.keras/datasets", "folder/more.csv")]
    project.write("train.py", f"import os\nopen('datasets/unpacked', 'w').write('1')\n{change}\n")
    died = project.run("python", "train.py", large=data)
    assert isinstance(died, Died)
    assert died.reason == f"{name} was changed in place, for large files and data are not copied: write another file"
    project.write("train.py", "open('datasets/unpacked', 'w').write('1')\n")
    assert isinstance(project.run("python", "train.py", large=data), Burst)


def test_data_that_cannot_be_written_are_not_looked_through(project: Project):
    """As in a container, which mounts them read-only."""
    write_data(project)
    project.write("train.py", "try:\n    open('more.csv', 'a')\nexcept OSError:\n    print('it is', 'read-only')\n")
    mount_read_only(project.folder)
    try:
        ran = project.run("python", "train.py", large=[f"{contract.DATA}/folder/more.csv"])
    finally:
        subprocess.run(["umount", "-l", str(project.folder)], check=True)
    assert isinstance(ran, Burst), ran
    assert "it is read-only" in project.bench.log.read_text()


def write_data(project: Project) -> None:
    project.write(f"{contract.DATA}/home/.keras/datasets/digits.csv", "1,2")
    project.write(f"{contract.DATA}/home/.keras/datasets/a/b/deep.csv", "1,2")
    project.write(f"{contract.DATA}/folder/more.csv", "3,4")


def test_a_read_only_project_can_be_changed_in_the_copy_but_for_what_can_be_executed(project: Project):
    """As it is in a container, whose scratch folder lets nothing be executed."""
    project.write("run.sh", "#!/bin/sh\necho more >> notes/log && test -L run.sh && test ! -L notes/log\n")
    (project.folder / "run.sh").chmod(0o755)
    project.write("notes/log", "of the project\n")
    mount_read_only(project.folder)
    try:
        for _ in range(2):
            ran = project.run("./run.sh")
            assert isinstance(ran, Burst), ran
    finally:
        subprocess.run(["umount", "-l", str(project.folder)], check=True)
    assert (project.folder / "notes" / "log").read_text() == "of the project\n"


def read_files(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


def test_it_sees_data_by_their_name_and_in_its_home(lasting: Project):
    lasting.write(f"{contract.DATA}/home/.keras/datasets/digits.csv", "1,2")
    lasting.write(f"{contract.DATA}/folder/more.csv", "3,4")
    source = """
        import os
        home = os.path.expanduser("~")
        assert os.listdir(home) == [".keras"]
        at_home = os.path.join(home, ".keras", "datasets")
        for path in (os.path.join(at_home, "digits.csv"), os.path.join("datasets", "digits.csv")):
            assert open(path).read() == "1,2"
        assert open("more.csv").read() == "3,4"
        assert not os.path.exists({data!r})
        # What is unpacked next to data goes with the program.
        open(os.path.join(at_home, "unpacked"), "w").write("heavy")
        open(os.path.join(home, ".keras", "keras.json"), "w").write("{{}}")
        """
    lasting.write("reads.py", source.format(data=contract.DATA))
    data = [f"{contract.DATA}/{name}" for name in ("home/.keras/datasets", "folder/more.csv")]
    for _ in range(2):
        ran = lasting.run("python", "reads.py", large=data)
        assert isinstance(ran, Burst), ran
    assert [path.name for path in (lasting.folder / contract.DATA / "home/.keras/datasets").iterdir()] == ["digits.csv"]


COMMANDS = {
    "a file": ("train.py",),
    "this Python by another name": ("python3.12", "train.py"),
    "a module": ("python", "-m", "helpers.main"),
    "code": ("python3", "-c", "import helpers.main"),
    "a script of the shell": ("bash", "run.sh"),
    "a script that can be run": ("./run.sh",),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_can_be_of_any_kind(lasting: Project, words: tuple[str, ...]):
    lasting.write("helpers/__init__.py", "")
    lasting.write("helpers/main.py", "import tensorflow\nprint('ran with', tensorflow.__version__)\n")
    lasting.write("train.py", "import helpers.main\n")
    lasting.write("run.sh", "#!/bin/sh\npython train.py\n")
    (lasting.folder / "run.sh").chmod(0o755)
    assert isinstance(lasting.run(*words), Burst)
    assert "ran with" in lasting.bench.log.read_text()


ENDINGS = {
    "an exception": ("raise SystemError('no such luck')", "raised", "exit code 1: SystemError: no such luck"),
    "an exception of many lines": (
        "print('Traceback (of another kind)')\nraise ValueError('wrong shape\\n\\nArguments:\\n  x=1\\n* y=2')",
        "raised",
        "exit code 1: ValueError: wrong shape",
    ),
    "an exception that AutoGraph wraps": (
        "raise TypeError('in converted code:\\n\\n    train.py:9 call  *\\n        net()\\n\\n  TypeError: no inputs')",
        "raised",
        "exit code 1: TypeError: in converted code: TypeError: no inputs",
    ),
    "an exception that Keras wraps": (
        "raise ValueError('Exception encountered when calling Net.call().\\n\\n\\x1b[1mno shape\\n\\nnot one\\x1b[0m\\n"
        "\\nArguments received by Net.call():\\n  • x=1')",
        "raised",
        "exit code 1: ValueError: Exception encountered when calling Net.call(). not one",
    ),
    "an exit code": ("print('half way')\nimport sys\nsys.exit(3)", "raised", "exit code 3: half way"),
    "a flag": (
        "print('FATAL Flags parsing error: no flag x')\nprint('Pass --helpshort or --helpfull to see help on flags.')\n"
        "raise SystemExit(1)",
        "raised",
        "exit code 1: FATAL Flags parsing error: no flag x",
    ),
    "a question": ("input('continue? ')", "raised", "EOFError: EOF when reading a line"),
    "a signal": ("import os\nos.kill(os.getpid(), 11)", "signal", "killed by SIGSEGV"),
    "syntax": ("print 'old'", "raised", "SyntaxError: "),
}


@pytest.mark.parametrize(("source", "how", "reason"), ENDINGS.values(), ids=ENDINGS)
def test_a_program_that_fails_says_why(lasting: Project, source: str, how: str, reason: str):
    lasting.write("failing.py", source)
    died = lasting.run("python", "failing.py")
    assert isinstance(died, Died)
    assert died.how == how
    assert reason in died.reason
    assert isinstance(lasting.run("python", "-c", "pass"), Burst)


def test_a_command_that_does_not_exist_is_named(lasting: Project):
    died = lasting.run("no-such-command", "train.py")
    assert died == Died("raised", "no-such-command: No such file or directory")


def test_a_program_that_never_ends_is_ended_with_what_it_has_started(lasting: Project):
    source = """
        import os, subprocess, time
        child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        with open("pids", "w") as pids:
            pids.write("{} {}".format(os.getpid(), child.pid))
        print("pids in", os.path.realpath("pids"), flush=True)
        print("pids", os.getpid(), child.pid, flush=True)
        time.sleep(3600)
        """
    lasting.write("endless.py", source)
    died = lasting.run("python", "endless.py", timeout_s=3.0)
    assert isinstance(died, Died)
    assert died.how == "timeout"
    pids = died.log.strip().splitlines()[-1].split()[1:]
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    place = Path(died.log.strip().splitlines()[-2].removeprefix("pids in "))
    assert not place.parent.parent.exists()


def test_packages_that_cannot_be_had_refuse_it(tmp_path: Path):
    layers = {"python train.py": {"refused": "it requires more than there is"}}
    bench = Bench(tmp_path, own={contract.LAYERS: json.dumps(layers)})
    bench.hello()
    assert Project(bench).open("python", "train.py")[1] == Refused("it requires more than there is")
    bench.channel.close()


def test_packages_come_last_and_reach_what_it_starts(tmp_path: Path):
    layer = tmp_path / "layer"
    layer.mkdir()
    (layer / "plots.py").write_text("print('plotted')\n")
    (layer / "json.py").write_text("raise ImportError('the layer comes last')\n")
    bench = Bench(tmp_path, own={contract.LAYERS: json.dumps({"bash run.sh": {"folder": str(layer)}})})
    bench.hello()
    project = Project(bench)
    project.write("run.sh", "python -c 'import json, plots'\n")
    assert isinstance(project.run("bash", "run.sh"), Burst)
    assert "plotted" in bench.log.read_text()
    bench.channel.close()


CALLS = {
    "none": "fit([], 2)",
    "a list": "fit([], epochs=2, callbacks=[Printing()])",
    "a list in its place": "fit([], 2, [Printing()])",
    "a tuple": "fit([], epochs=2, callbacks=(Printing(),))",
    "one alone": "fit([], epochs=2, callbacks=Printing())",
    "the other method": "fit_generator([], 2, callbacks=[Printing()])",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_steps_of_keras_are_timed(project: Project, call: str):
    for name, source in keras.SOURCES.items():
        project.write(name, source)
    project.write("train.py", f"from keras import Model\nfrom keras.callbacks import Printing\nModel().{call}\n")
    burst = project.run("python", "train.py")
    assert isinstance(burst, Burst), burst
    assert project.bench.log.read_text().count("epoch ") == (2 if "Printing" in call else 0)
    facts = project.facts()
    # Neither the end of an epoch nor what goes before the first step counts as a step.
    assert 0.01e9 <= int(str(facts["step_ns"])) < 0.05e9
    assert int(str(facts["first_step_ns"])) >= 0.21e9
    assert json.loads(str(facts["losses"])) == [1.0, 0.5]


# A step of this Keras gives a GPU 30 ms of work, and returns after 10 ms. Nothing else waits for the GPU.
QUEUED = """
    import os
    os.environ["STUB_GPUS"] = "{gpus}"
    import tensorflow as tf
    from keras import Model
    from keras.callbacks import Callback

    class Launching(Callback):
        def on_epoch_begin(self, epoch, logs=None):
            tf.queue.launch(0.03)

        def on_batch_end(self, batch, logs=None):
            if batch < 4:
                tf.queue.launch(0.03)

    Model().fit([], 3, [Launching()])
    """


@pytest.mark.parametrize(("gpus", "low", "high"), [(1, 0.029, 0.06), (0, 0.01, 0.029)])
def test_steps_of_keras_last_until_a_gpu_has_done_them(project: Project, gpus: int, low: float, high: float):
    stub.write(project.folder)
    for name, source in keras.SOURCES.items():
        project.write(name, source)
    project.write("train.py", QUEUED.format(gpus=gpus))
    burst = project.run("python", "train.py")
    assert isinstance(burst, Burst), burst
    assert low * 1e9 <= int(str(project.facts()["step_ns"])) < high * 1e9


def test_a_loss_that_is_no_number_or_infinite_is_kept(project: Project):
    for name, source in keras.SOURCES.items():
        project.write(name, source.replace("1.0 / (epoch + 1)", "[1e999, -1e999, 1e999 - 1e999, 0.5][epoch]"))
    project.write("train.py", "from keras import Model\nModel().fit([], 4)\n")
    assert isinstance(project.run("python", "train.py"), Burst)
    assert json.loads(str(project.facts()["losses"])) == ["inf", "-inf", "nan", 0.5]


@pytest.mark.parametrize("untuned", [False, True])
def test_datasets_of_a_program_are_untuned_if_asked(fresh: Bench, *, untuned: bool):
    """The program has a TensorFlow of its folder, whose datasets say what an iterator would get."""
    project = Project(fresh)
    stub.write(project.folder)
    project.write(
        "read.py",
        """
        import sys
        from tensorflow.python.data.ops.dataset_ops import DatasetV2
        sys.exit(str(DatasetV2()._apply_debug_options()._options_attr.autotune.enabled))
        """,
    )
    fresh.hello(untuned=untuned)
    died = project.run("python", "read.py")
    assert isinstance(died, Died)
    assert died.reason.endswith(": False" if untuned else ": None")


def test_what_a_program_writes_into_the_file_of_steps_does_no_harm(project: Project):
    lie = '{"step_ns": "long", "first_step_ns": -1, "losses": [[]]}'
    project.write("lying.py", f"import os\nopen(os.environ.get('TFCOMPARE_STEPS', 'none'), 'w').write('{lie}')\n")
    project.write("run.sh", f"echo '{lie}' > $TFCOMPARE_STEPS\n")
    assert isinstance(project.run("bash", "run.sh"), Burst)
    assert isinstance(project.run("python", "lying.py"), Burst)
    facts = project.facts()
    assert (facts["step_ns"], facts["losses"]) == (None, None)


def test_the_sitecustomize_of_an_environment_still_runs(tmp_path: Path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("print('customised')\n")
    (site / "usable.py").write_text("")
    bench = Bench(tmp_path)
    bench.hello()
    project = Project(bench)
    project.write("run.sh", f"PYTHONPATH=$PYTHONPATH:{site} python -c 'import usable'\n")
    assert isinstance(project.run("bash", "run.sh"), Burst)
    assert "customised" in bench.log.read_text()
    bench.channel.close()


def test_a_replicate_leaves_no_folder_behind(project: Project):
    number, _ = project.open("python", "-c", "import os; print('in', os.getcwd())")
    assert isinstance(project.bench.burst(number, 1), Burst)
    assert isinstance(project.bench.close(number), Closed)
    place = Path(project.bench.log.read_text().strip().splitlines()[-1].removeprefix("in "))
    assert place.parent.parent.parent.is_dir()
    assert not place.parent.parent.exists()


def test_a_stream_of_programs_has_the_columns_of_the_contract(project: Project):
    assert isinstance(project.run("python", "-c", "pass"), Burst)
    project.facts()
    table, _ = read_stream(project.bench.stream)
    assert table.schema.equals(contract.arrow_schema(pa))
    assert table["phase"].to_pylist() == ["build", "burst"]
