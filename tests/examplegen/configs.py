"""The two configurations of an ExampleGen, from names."""

from tfx.proto import example_gen_pb2


def input_config(**patterns):
    splits = [example_gen_pb2.Input.Split(name=n, pattern=p) for n, p in patterns.items()]
    return example_gen_pb2.Input(splits=splits)


def output_config(**buckets):
    split = example_gen_pb2.SplitConfig.Split
    splits = [split(name=n, hash_buckets=b) for n, b in buckets.items()]
    return example_gen_pb2.Output(split_config=example_gen_pb2.SplitConfig(splits=splits))
