"""Versions, the artifact and the paper: what strangers install, rerun and cite."""
