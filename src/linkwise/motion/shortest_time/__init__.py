"""The shortest time along a path: ``motion.time_optimal``."""
