"""Every way to start a placement server, with the real program, as operators and deployment tools do it.

If a program is not installed, its test is skipped with the name of the package.
"""
