"""Files of rows <-> streams of Arrow record batches."""

from strays.tables.chunks import PART_ROWS, Chunk, cut
from strays.tables.folder import InputFile, InputFiles, find_files
from strays.tables.read import format_of, open_table
from strays.tables.table import Table, texts_of
from strays.tables.write import OUTPUT_FORMATS, complete_file, count_rows, open_writer, output_format

__all__ = [
    "OUTPUT_FORMATS",
    "PART_ROWS",
    "Chunk",
    "InputFile",
    "InputFiles",
    "Table",
    "complete_file",
    "count_rows",
    "cut",
    "find_files",
    "format_of",
    "open_table",
    "open_writer",
    "output_format",
    "texts_of",
]
