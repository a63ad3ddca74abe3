"""CUDA: a program as a kernel (``source``), and a file for each shape of program."""
