"""Every Python of a program imports this as it starts: it times the steps of Keras' `fit`, and finds packages.

Nothing here may disturb the program, which has the same results and prints the same without this file. It also switches
off the tuning of datasets, if the user asks for that.
"""

import os
import sys


def _follow():
    """Run the sitecustomize of the environment, which this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in sys.path:
        path = os.path.join(folder, "sitecustomize.py")
        if os.path.abspath(folder) != here and os.path.isfile(path):
            with open(path, "rb") as file:
                exec(compile(file.read(), path, "exec"), {"__name__": "sitecustomize", "__file__": path})
            break


# Programs that this program starts also find the packages, but time no steps.
if os.environ.get("TFCOMPARE_PACKAGES"):
    sys.path.append(os.environ["TFCOMPARE_PACKAGES"])
if os.environ.get("TFCOMPARE_UNTUNED"):
    try:
        import tfcompare_imports
        import tfcompare_tuning

        tfcompare_imports.act_after_import(tfcompare_tuning.HOME.__eq__, tfcompare_tuning.leave_untuned)
    except Exception as error:
        sys.stderr.write(f"tfcompare: datasets are tuned: {error}\n")
_file = os.environ.pop("TFCOMPARE_STEPS", "")
if _file:
    try:
        import tfcompare_steps

        tfcompare_steps.watch(_file)
    except Exception as error:
        sys.stderr.write(f"tfcompare: steps are not timed: {error}\n")
_file = os.environ.pop("TFCOMPARE_WARNINGS", "")
if _file:
    try:
        import tfcompare_warnings

        tfcompare_warnings.watch(_file)
    except Exception as error:
        sys.stderr.write(f"tfcompare: warnings are not collected: {error}\n")
_follow()
