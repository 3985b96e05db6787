"""`talkpath-bench`: the composition root of the benchmarks, above all rooms."""
