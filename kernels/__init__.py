"""One definition per operation. ``autotune.kernels()`` lists them, with those of other packages."""
