"""Removes one environment from this machine: the image, or the virtual environment, that a run recorded."""

import re
from contextlib import closing, suppress

from orchestrator.engines.venv.engine import environments_folder
from orchestrator.errors import EnvironmentFailed, TfCompareError
from orchestrator.images import venv_cache
from orchestrator.options import VENV

# The name of a virtual environment's folder, and the id of an image.
FOLDER, IMAGE = re.compile(r"[A-Za-z0-9][\w.+-]{0,200}"), re.compile(r"sha256:[0-9a-f]{64}")
# A slow engine delays its caller by no more than this.
ENGINE_S = 60.0


def remove_installed(engine: str, identity: str) -> str:
    """Remove what an engine has made for a target, and nothing else; return why it is still there, or ''."""
    if engine == VENV:
        removed = bool(FOLDER.fullmatch(identity)) and venv_cache.remove_environment(environments_folder() / identity)
        return "" if removed else f"{identity} is in use, or not ours to remove"
    if not IMAGE.fullmatch(identity):
        return f"{identity} names no image"
    # The engine's client is slow to import.
    from docker.errors import ImageNotFound

    from orchestrator.engines.docker.client import asking, connect_engine

    try:
        client = connect_engine(ENGINE_S)
        with closing(client), asking("removing an image", EnvironmentFailed), suppress(ImageNotFound):
            names = client.images.get(identity).tags
            if foreign := [name for name in names if not name.startswith("tfcompare:")]:
                return f"it is named {foreign[0]} too"
            # The names are removed one after another and never by force, which would remove an image that is in use.
            for name in names or [identity]:
                with suppress(ImageNotFound):
                    client.api.remove_image(name)
    except TfCompareError as error:
        return error.headline
    return ""
