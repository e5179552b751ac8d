"""Several trainings that answer one question, or teach one model."""
