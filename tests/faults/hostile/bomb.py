"""Puts a stream in the place of its worker's, of which a few kilobytes unpack to gigabytes."""

import os

PARAMS = {}
ROWS, BATCHES = 10**6, 20


def build(tf, params):
    import numpy as np
    import pyarrow as pa

    from workloads import contract

    schema = contract.arrow_schema(pa)
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int32)), pa.array(["x"]))
        if pa.types.is_dictionary(field.type)
        else pa.array(np.zeros(ROWS, field.type.to_pandas_dtype()))
        for field in schema
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(stream() + ".new", "wb") as sink:
        writer = pa.ipc.RecordBatchStreamWriter(sink, schema, options=options)
        for _ in range(BATCHES):
            writer.write_batch(batch)
        writer.close()
    os.rename(stream() + ".new", stream())
    return lambda: 1.0


def stream():
    for name in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(os.path.join("/proc/self/fd", name))
        except OSError:
            continue
        if link.partition(" (deleted)")[0].endswith("/stream.arrow"):
            return link.partition(" (deleted)")[0]
    raise LookupError("its worker has no stream")
