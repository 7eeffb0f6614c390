"""python -m strays"""

from strays.apps.cli import main

main()
