"""Writes docs/cuda-features.md."""

from .features import PAGE, features, page

PAGE.write_text(page(list(features())))
