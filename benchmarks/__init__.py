"""Measurements. They import sentence_state; sentence_state never imports them."""
