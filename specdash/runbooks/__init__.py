"""The procedure: steps that tick themselves, the operator's own to-dos, runbooks and reports."""
