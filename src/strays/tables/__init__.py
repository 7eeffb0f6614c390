"""Files of rows <-> streams of Arrow record batches."""

from strays.tables.read import FORMATS, format_of, open_table
from strays.tables.table import Table, texts_of
from strays.tables.write import OUTPUT_FORMATS, open_writer, output_format

__all__ = [
    "FORMATS",
    "OUTPUT_FORMATS",
    "Table",
    "format_of",
    "open_table",
    "open_writer",
    "output_format",
    "texts_of",
]
