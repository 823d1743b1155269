# tfcompare itself, for docker-compose.yml: what it needs by hash, and then this checkout. It measures in containers of
# the engine whose socket it is given, and so holds no TensorFlow.
# Context: the checkout, of which .dockerignore lets in what is used here.
ARG BASE=python:3.11-slim
FROM ${BASE}

RUN python3 -m venv /opt/tfcompare
ENV PATH=/opt/tfcompare/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    TFCOMPARE_HISTORY=/history \
    TFCOMPARE_DATA=/data \
    TFCOMPARE_CACHE=/cache

COPY requirements/nightly.txt requirements/build.txt /tmp/build/
RUN python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /tmp/build/nightly.txt \
 && python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes --target /tmp/build/tools \
    -r /tmp/build/build.txt

COPY pyproject.toml README.md LICENSE /tmp/build/tfcompare/
COPY orchestrator /tmp/build/tfcompare/orchestrator
COPY tfcompare /tmp/build/tfcompare/tfcompare
COPY workloads /tmp/build/tfcompare/workloads
COPY images /tmp/build/tfcompare/images
RUN PYTHONPATH=/tmp/build/tools python -m pip install --no-cache-dir --disable-pip-version-check --no-deps \
    --no-build-isolation /tmp/build/tfcompare \
 && rm -r /tmp/build

WORKDIR /history
ENTRYPOINT ["tfcompare"]
CMD ["nightly", "status"]
