"""Section 3.3: from an encoding to a task."""
