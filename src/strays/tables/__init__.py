"""Files of rows <-> streams of Arrow record batches."""

from strays.tables.chunks import PART_BYTES, PART_ROWS, Chunk, cut
from strays.tables.folder import DOCUMENTS, InputFile, InputFiles, find_files
from strays.tables.formats import FORMATS, format_of
from strays.tables.open import open_input, open_table, require_alike
from strays.tables.sort import in_order
from strays.tables.table import Table, texts_of
from strays.tables.text_column import TextColumn
from strays.tables.write import OUTPUT_FORMATS, complete_file, count_rows, open_writer, output_format

__all__ = [
    "DOCUMENTS",
    "FORMATS",
    "OUTPUT_FORMATS",
    "PART_BYTES",
    "PART_ROWS",
    "Chunk",
    "InputFile",
    "InputFiles",
    "Table",
    "TextColumn",
    "complete_file",
    "count_rows",
    "cut",
    "find_files",
    "format_of",
    "in_order",
    "open_input",
    "open_table",
    "open_writer",
    "output_format",
    "require_alike",
    "texts_of",
]
