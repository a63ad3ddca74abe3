"""What commands share: options, help, output, endings. Commands are in ``linkwise.cli``."""
