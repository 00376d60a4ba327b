"""The wheel as an operator gets it: installed in an environment of its own, far from the checkout."""
