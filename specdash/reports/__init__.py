"""What was done, with what evidence: Markdown, or one HTML page.

May touch: what other rooms have kept, to read it.
"""
