"""A device and a sampler for autotune, from outside of its tree."""
