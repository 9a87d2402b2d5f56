"""What the playground shows and does not compute on the spot."""
