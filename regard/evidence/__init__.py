"""Evidence for or against attention weights as explanations: leave-one-out, gradients and altered attention."""
