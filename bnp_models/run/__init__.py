"""Runs: `fit`, stretches of sweeps on the device, checkpoints, progress."""

__all__: list[str] = []
