"""What is not a Gibbs kernel: other estimates of topics, in the form that the scores take."""

__all__: list[str] = []
