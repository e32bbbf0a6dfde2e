"""What recorded sweeps tell: winners and failures, parameters that matter, neighbours, portfolios, losses, noise."""
