"""epochwatt: where the time and the energy of a DNN training epoch go. (Board side: Python 3.6.)"""

__version__ = "0.1.0"
