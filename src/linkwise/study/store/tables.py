"""Tables as the bytes of Parquet files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from linkwise.study.errors import needed


def parquet(columns: Mapping[str, Any], facts: Mapping[str, str] | None = None) -> bytes:
    """Named columns; ``facts`` go into the metadata of the schema."""
    arrow, writer = needed("pyarrow"), needed("pyarrow.parquet")
    table = arrow.table(dict(columns))
    if facts:
        table = table.replace_schema_metadata(dict(facts))
    sink = io.BytesIO()
    # numbers that all differ: a dictionary of them would take more room and time than they do
    writer.write_table(
        table, sink, compression="zstd", use_dictionary=False, store_schema=False, write_page_checksum=True
    )
    return sink.getvalue()
