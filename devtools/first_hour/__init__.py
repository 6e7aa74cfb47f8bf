"""The first hour of a newcomer, scripted: every block of the documents is run in order, as it stands there.

    console    `$ ` begins a command; what it prints, its errors included, must be the lines below it
    bash …     a line for a shell's start-up file: bash, zsh and fish each run their own
    python     a script; it prints what the block `output` after it shows, or nothing
    python spark                   the same, with a Spark session named `spark`
    python test, python conftest   files of one run of pytest at the end of the document

Blocks of any other kind are not run. `make test` runs what needs neither pip nor Spark, with the ixion that is being
tested (tests/test_first_hour.py); `make first-hour` runs all of it in an empty environment.
"""
