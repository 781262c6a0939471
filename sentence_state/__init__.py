"""Sentence-State LSTM (Zhang, Liu and Song, ACL 2018): a state for every word and one for the sentence."""

__version__ = "0.1.0"
