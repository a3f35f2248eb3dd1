"""Server-side JavaScript: stored procedures, triggers and user-defined functions, in sandboxes of QuickJS.

A script never calls into the program. It runs in turns: within a turn it queues operations, between turns the program
carries them out and returns the results. docs/decisions/0010-quickjs.md explains why.
"""
