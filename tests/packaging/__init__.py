"""The wheel as an operator gets it: installed in a separate environment, far from the checkout."""
