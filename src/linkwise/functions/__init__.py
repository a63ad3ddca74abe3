"""Every public function of a robot as a row of a table (``table``), the algorithm behind each row
(``evaluation``), parameters that stay inputs, and forms with loops for large robots. Nothing here is compiled:
that is ``linkwise.robot.kernels``.
"""
