"""``placement simulate --trace``: how much of a cluster's GPUs policies allocate, compared with published results."""
