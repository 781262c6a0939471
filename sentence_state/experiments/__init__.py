"""Sections 4.1 to 4.5: one file a subsection, one function a table or figure."""
