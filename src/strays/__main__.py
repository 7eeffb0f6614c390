"""python -m strays"""

from strays.cli import main

main()
