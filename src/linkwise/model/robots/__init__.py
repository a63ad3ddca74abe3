"""The bundled robots: one TOML file each, with the source of its numbers."""
