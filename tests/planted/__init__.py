"""Wrong kernels, planted on purpose: none of them may be measured."""
