"""What is told of an environment: its distributions, every file that is not as it was installed, and what imports say."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from workloads import image_inventory

SCRIPT = os.path.abspath(image_inventory.__file__)
NUMPY = "__version__ = '1.2.3'\n"
# As the real one does: it prints, and its answers are functions in modules.
TENSORFLOW = """
import os, types
print("hello from TensorFlow")
os.write(1, b"and from its C++\\n")
__version__ = "2.3.4"
test = types.SimpleNamespace(is_built_with_cuda=lambda: True)
sysconfig = types.SimpleNamespace(get_build_info=lambda: {"cuda_version": "10.1"})
"""
BEFORE_BUILD_INFO = TENSORFLOW.replace("get_build_info", "get_lib")
BUILD_INFO = "cuda_version_number = '10.0'\n"


def write(path, text):
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder)
    with open(path, "w") as file:
        file.write(text)


class Folder(unittest.TestCase):
    """A folder of installed packages, made by hand."""

    def setUp(self):
        root = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, root)
        self.folder = os.path.join(root, "lib", "python", "site-packages")
        os.makedirs(self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def install(self, name, number, files, record=None):
        """A distribution as pip leaves it; `record` names files otherwise than they lie."""
        for path, text in files.items():
            write(self.path(path), text)
        info = "{}-{}.dist-info".format(name.replace("-", "_"), number)
        write(self.path(info, "METADATA"), f"Name: {name}\nVersion: {number}\n\nName: not a header\n")
        lines = [f"{path},sha256={image_inventory.digest_of(self.path(path))},1" for path in files]
        lines += record or []
        write(self.path(info, "RECORD"), "\n".join(lines + [info + "/RECORD,,"]) + "\n")

    def check(self):
        records = [record for _, _, record in image_inventory.distributions(self.folder) if record]
        return image_inventory.check(self.folder, records)

    def named(self, what):
        found = self.check()[what]
        self.assertEqual(found["count"], len(found["first"]))
        return found["first"]


class Distributions(Folder):
    def test_each_is_told_by_the_name_that_indexes_compare(self):
        self.install("Some_Thing.Else", "1.0", {"some.py": ""})
        self.install("six", "1.17.0", {"six.py": ""})
        found = [(name, number) for name, number, _ in image_inventory.distributions(self.folder)]
        self.assertEqual(sorted(found), [("six", "1.17.0"), ("some-thing-else", "1.0")])

    def test_one_without_metadata_is_told_by_its_folder(self):
        os.makedirs(self.path("six-1.17.0.dist-info"))
        self.assertEqual(list(image_inventory.distributions(self.folder)), [("six", "1.17.0", None)])

    def test_an_egg_has_no_record(self):
        write(self.path("old-1.0-py3.7.egg-info"), "Name: old\nVersion: 1.0\n")
        write(self.path("new-2.0.egg-info", "PKG-INFO"), "Name: new\nVersion: 2.0\n")
        self.assertEqual(sorted(image_inventory.distributions(self.folder)), [("new", "2.0", None), ("old", "1.0", None)])


class Files(Folder):
    def setUp(self):
        Folder.setUp(self)
        self.install("six", "1.17.0", {"six.py": "one", "data/a,b.txt": "two"})

    # A name with a comma is quoted in a RECORD.
    def install(self, name, number, files, record=None):
        Folder.install(self, name, number, {path: text for path, text in files.items() if "," not in path}, record)
        for path, text in files.items():
            if "," in path:
                write(self.path(path), text)
                record = self.path(f"{name}-{number}.dist-info", "RECORD")
                with open(record, "a") as rows:
                    rows.write(f'"{path}",sha256={image_inventory.digest_of(self.path(path))},1\n')

    def test_a_folder_as_it_was_installed_is_whole(self):
        found = self.check()
        self.assertEqual((found["checked"], found["unhashed"]), (2, 1))
        for what in ("missing", "changed", "added"):
            self.assertEqual(self.named(what), [])

    def test_one_byte_is_enough(self):
        write(self.path("data", "a,b.txt"), "twO")
        self.assertEqual(self.named("changed"), [os.path.join("data", "a,b.txt")])
        self.assertEqual(self.named("missing"), [])

    def test_a_file_that_is_gone_is_missing(self):
        os.remove(self.path("six.py"))
        self.assertEqual((self.named("missing"), self.named("changed")), (["six.py"], []))

    def test_code_that_no_record_names_was_added_and_what_python_compiled_was_not(self):
        write(self.path("evil.pth"), "import os")
        write(self.path("data", "more.py"), "")
        write(self.path("data", "notes.txt"), "")
        write(self.path("__pycache__", "six.cpython-37.pyc"), "")
        self.assertEqual(self.named("added"), [os.path.join("data", "more.py"), "evil.pth"])

    def test_a_file_of_two_distributions_is_that_of_either(self):
        self.install("twin", "1.0", {"six.py": "one, written again"})
        self.assertEqual(self.named("changed"), [])
        write(self.path("six.py"), "three")
        self.assertEqual(self.named("changed"), ["six.py"])

    def test_a_program_that_pip_moved_into_the_folder_is_found_there(self):
        write(self.path("bin", "pip"), "#!python")
        digest = image_inventory.digest_of(self.path("bin", "pip"))
        self.install("pip", "24.0", {}, [f"../../bin/pip,sha256={digest},8"])
        self.assertEqual((self.named("missing"), self.named("changed")), ([], []))
        write(self.path("bin", "pip"), "#!other")
        self.assertEqual(self.named("changed"), [os.path.join("bin", "pip")])

    def test_of_many_files_the_first_are_named_and_all_are_counted(self):
        many = {f"many/{number:03}.py": "" for number in range(30)}
        self.install("many", "1.0", many)
        shutil.rmtree(self.path("many"))
        found = self.check()["missing"]
        self.assertEqual((found["count"], found["first"][0]), (30, os.path.join("many", "000.py")))
        self.assertEqual(len(found["first"]), image_inventory.MOST_NAMED)


class Script(Folder):
    def run_it(self, **modules):
        for name, text in modules.items():
            write(self.path(name) + ".py", text)
        env = dict(os.environ, PYTHONPATH=self.folder, PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.Popen([sys.executable, SCRIPT], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        answer, said = done.communicate()
        self.assertEqual(done.returncode, 0, said)
        self.assertEqual(answer.count(b"\n"), 1)
        return json.loads(answer.decode("utf-8")), said.decode("utf-8")

    def test_what_tensorflow_prints_stays_out_of_the_answer(self):
        found, said = self.run_it(numpy=NUMPY, tensorflow=TENSORFLOW)
        expected = {"numpy": "1.2.3", "tensorflow": "2.3.4", "cuda_build": True, "cuda_version": "10.1", "compute": []}
        self.assertEqual(found["imported"], expected)
        self.assertIn("hello from TensorFlow", said)
        self.assertIn("and from its C++", said)
        self.assertEqual(found["python"].split(".")[:2], [str(part) for part in sys.version_info[:2]])
        self.assertEqual([entry["folder"] for entry in found["files"]], image_inventory.folders())

    def test_an_old_tensorflow_tells_its_cuda_elsewhere(self):
        write(self.path("tensorflow", "__init__.py"), BEFORE_BUILD_INFO)
        write(self.path("tensorflow", "python", "__init__.py"), "")
        write(self.path("tensorflow", "python", "platform", "__init__.py"), "")
        write(self.path("tensorflow", "python", "platform", "build_info.py"), BUILD_INFO)
        found, _ = self.run_it(numpy=NUMPY)
        self.assertEqual(found["imported"]["cuda_version"], "10.0")

    def test_a_package_that_cannot_be_imported_is_a_finding(self):
        found, _ = self.run_it(numpy=NUMPY, tensorflow="raise RuntimeError('no\\nlibrary')")
        self.assertEqual(found["imported"], {"error": "RuntimeError: no\nlibrary"})
        self.assertTrue(found["files"])

    def test_a_tensorflow_that_ends_the_process_is_a_finding(self):
        found, _ = self.run_it(numpy=NUMPY, tensorflow="import os\nos.abort()")
        self.assertEqual(found["imported"], {"error": "ended by signal 6"})
        found, _ = self.run_it(tensorflow="import os\nos._exit(3)")
        self.assertEqual(found["imported"], {"error": "ended with exit code 3"})

    def test_the_standard_library_is_not_taken_from_beside_the_script(self):
        text = TENSORFLOW + "import cProfile, profile\nassert 'workloads' not in profile.__file__\n"
        found, _ = self.run_it(numpy=NUMPY, tensorflow=text)
        self.assertNotIn("error", found["imported"])


if __name__ == "__main__":
    unittest.main()
