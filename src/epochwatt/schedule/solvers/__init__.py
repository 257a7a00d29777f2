"""Solvers: each looks at a few profiles of an oracle and answers with a plan, or with none."""
