"""Drawing: one module per figure number, each read -> small dataclass -> draw."""
