"""Settings with which training stands still: a step of no size."""

from counterpath.training import TrainingSettings

STILL = TrainingSettings(
    steps=1,
    epochs=1,
    batch_size=1,
    cuts_per_step=1,
    draws=1,
    learning_rate=0.0,
    drift_learning_rate=0.0,
    readout_learning_rate=0.0,
    schedule="constant",
    patience=None,
)
