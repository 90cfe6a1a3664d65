"""The zoo: many architectures as tiny models with random weights, each run forward, through a loss
and backward on the CPU and on tpu in three ways, and compared.

`torchtpu zoo` is its command line. hub and timm_hub make the models, check compares, sweep runs
each in a process of its own, report groups what failed.
"""
