"""Plan rounds of federated training on boards of different speed so that they end together."""
