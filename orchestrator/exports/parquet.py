"""A flat table as Parquet, for pandas, polars and duckdb."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from orchestrator import contract
from orchestrator.exports.files import open_output
from orchestrator.results import tables
from orchestrator.results.run import Run
from orchestrator.results.run_folder import RunFolder


def write(run: Run, path: Path, table: str) -> tuple[Path, ...]:
    """Write a table to a file; calls are written stream by stream, since together they may not fit into memory."""
    if table == "calls":
        schema = contract.arrow_schema(pa)
        parts = tables.streams_of_calls(RunFolder.open(run.path), run.replicates)
    else:
        data = run.to_arrow(table)
        schema, parts = data.schema, iter([data])
    about = {
        b"tfcompare.run": run.plan.run.encode(),
        b"tfcompare.tool": run.manifest.tool.encode(),
        contract.FINGERPRINT_KEY: run.manifest.contract.encode(),
    }
    marked = schema.with_metadata({**(schema.metadata or {}), **about})
    with open_output(path) as file, pyarrow.parquet.ParquetWriter(file, marked, compression="zstd") as writer:
        for part in parts:
            writer.write_table(part.replace_schema_metadata(marked.metadata))
    return (path,)
