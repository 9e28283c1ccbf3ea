"""What was done, when, and with what evidence: as Markdown for a ticket, and as one page to open anywhere."""
