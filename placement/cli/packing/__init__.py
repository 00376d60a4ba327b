"""``placement simulate --trace``: how much of a real cluster's GPUs policies allocate, beside published results."""
