"""Laws: what no answer may say, tried on random networks, chips and settings; `python -m laws` runs them."""
