"""Steps in time of robots that touch: candidates (``candidates``), the law (``law``), its solver (``solver``)."""
