"""Every way in which a placement server is started, each with the real program, as operators and deployment tools do.

A program that is not installed is skipped, with the name of its package.
"""
