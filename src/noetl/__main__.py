from noetl.cli import main

main()
