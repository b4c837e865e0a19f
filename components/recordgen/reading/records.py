"""Shards → serialised records → batches, in the order and number of the plan."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import tensorflow as tf

from recordgen import storage
from recordgen.access.counting import is_cheap, remembered
from recordgen.access.shards import REPLACED, Generation, ShardSet
from recordgen.core.dataset.manifest import DATASET_FILE, LABELS_FILE
from recordgen.core.dataset.vocabulary import labels_text
from recordgen.core.ordered import map_in_order
from recordgen.core.records import RECORDS
from recordgen.errors import UsageError
from recordgen.reading.decoding import PIXELS_VERSION, as_written
from recordgen.reading.options import AUTOTUNE, LabelOptions, ReadOptions, RecordOptions
from recordgen.reading.parsing import as_floats
from recordgen.reading.plan import NOTHING, CachePlan, ReadPlan

# --- random order and random numbers that depend only on a seed -----------------------------------

# ``Dataset.shuffle`` and ``Dataset.random`` combine their seed with the global seed of
# ``tf.random.set_seed``. Here TensorFlow's ops get both seeds directly. Without a seed, their own
# rules apply.

# TensorFlow's default global seed: a seed gives the same order as in ``Dataset.shuffle`` without
# ``tf.random.set_seed``.
_GLOBAL_SEED = 87654321

# TensorFlow's seeds have 31 bits.
_SEEDS = 2**31 - 1


def shuffled(dataset: tf.data.Dataset, buffer: int, seed: int | None) -> tf.data.Dataset:
    """Shuffle with a buffer of ``buffer`` elements, in a new order in each iteration."""
    if seed is None:
        return dataset.shuffle(buffer)
    flat = tf.nest.flatten(dataset.element_spec)
    # Ragged and sparse tensors are variants.
    variants = tf.TensorSpec(None, tf.variant)
    specs = [spec if isinstance(spec, tf.TensorSpec) else variants for spec in flat]
    variant = tf.raw_ops.ShuffleDatasetV3(
        input_dataset=tf.data.experimental.to_variant(dataset),
        buffer_size=buffer,
        seed=_GLOBAL_SEED,
        seed2=seed % _SEEDS,
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        reshuffle_each_iteration=True,
        output_types=[spec.dtype for spec in specs],
        output_shapes=[spec.shape for spec in specs],
    )
    found = tf.data.experimental.from_variant(variant, dataset.element_spec)
    # A variant does not keep the tables and variables of earlier functions alive.
    found.shuffled_from = dataset
    return found


def random_numbers(seed: int | None) -> tf.data.Dataset:
    """Return an endless dataset of random numbers (int64 []), new in each iteration."""
    if seed is None:
        return tf.data.Dataset.random(rerandomize_each_iteration=True)
    spec = tf.TensorSpec((), tf.int64)
    variant = tf.raw_ops.RandomDatasetV2(
        seed=_GLOBAL_SEED,
        seed2=seed % _SEEDS,
        seed_generator=tf.raw_ops.DummySeedGenerator(),
        rerandomize_each_iteration=True,
        output_types=[spec.dtype],
        output_shapes=[spec.shape],
    )
    return tf.data.experimental.from_variant(variant, spec)


# --- the files of a plan, opened by TensorFlow: their records, whole or a piece -------------------

# TensorFlow allocates whatever a length says, and dies if that is more than there is. So all
# lengths are checked first, once for each version of the files. Compressed files are not checked,
# because TensorFlow's memory grows with what it unpacks, and neither are files in object stores,
# where each record would take a request.

# On a cold disk, looking for the next record is a wait.
_THREADS = 16


def slices_of(plan: ReadPlan) -> tuple[Any, ...]:
    """Return the arguments of :func:`read_piece`, each as a list over the files."""
    if not plan.pieces:
        return (list(plan.files),)
    starts = [piece.start for piece in plan.pieces]
    counts = [piece.count for piece in plan.pieces]
    return list(plan.files), tf.constant(starts, tf.int64), tf.constant(counts, tf.int64)


def _unchanged(generation: Generation, path: tf.Tensor) -> tf.Tensor:
    """Return ``path`` (string []); fail if another dataset replaced its file.

    It is part of the function that opens a file: one more stage would cost each pass 20 ms.
    """
    paths, digests = zip(*generation.digests.items(), strict=True)
    digest = tf.boolean_mask(tf.constant(digests), tf.constant(paths) == path)
    manifest = tf.io.read_file(storage.join(generation.root, DATASET_FILE))
    pattern = tf.strings.join(["(?s).*", tf.strings.reduce_join(digest), ".*"])
    is_same = tf.strings.regex_full_match(manifest, pattern)
    if labels := labels_text(generation.labels).encode():
        names = tf.io.read_file(storage.join(generation.root, LABELS_FILE))
        is_same &= tf.strings.substr(names, 0, len(labels)) == labels
    message = f"{generation.root or '.'}: {REPLACED}"
    # The raw op: tf.debugging.Assert would build two more functions.
    checked = tf.raw_ops.Assert(condition=is_same, data=[message])
    with tf.control_dependencies([checked]):
        return tf.identity(path)


@as_written
def read_piece(
    read: Callable[[tf.Tensor], tf.data.Dataset],
    generation: Generation | None,
    path: tf.Tensor,
    start: tf.Tensor | None = None,
    count: tf.Tensor | None = None,
) -> tf.data.Dataset:
    """Return serialised records (string []) of the shard at ``path`` (string []).

    With ``start`` and ``count`` (int64 []) only the records of a
    :class:`recordgen.reading.plan.Piece`.
    """
    path = path if generation is None else _unchanged(generation, path)
    records = read(path)
    return records if start is None else records.skip(start).take(count)


def read_file(plan: ReadPlan, path: tf.Tensor) -> tf.data.Dataset:
    """Return the serialised records of the file at ``path``, packed or not."""
    is_gzip = tf.strings.regex_full_match(path, r".*\.gz")
    if plan.packed:
        is_gzip |= tf.reduce_any(path == tf.constant(plan.packed))
    compression = tf.where(is_gzip, "GZIP", "")
    # The op: tf.data.TFRecordDataset has a stage for many files, through which each record goes.
    records = tf.raw_ops.TFRecordDataset(
        filenames=path, compression_type=compression, buffer_size=plan.read_buffer
    )
    return tf.data.experimental.from_variant(records, tf.TensorSpec((), tf.string))


def check_lengths(plan: ReadPlan, shards: ShardSet) -> None:
    """Check the lengths of all records. Raises: RecordError: one does not fit its file."""
    cheap = [path for path in plan.files if is_cheap(path)]
    if shards.dataset is None or not cheap:
        return  # other tools' files were counted, or are not checked

    def check_all() -> int:
        return len(list(map_in_order(RECORDS.check_lengths, cheap, threads=_THREADS)))

    remembered(cheap, "lengths", check_all)


@cache
def end_quietly() -> None:
    """Hide errors of TensorFlow 2.16 at exit, where functions of datasets outlive its modules."""

    def ignore() -> None:
        show = sys.unraisablehook

        def hook(found: Any) -> None:
            if getattr(found.object, "__qualname__", "") != "AtomicFunction.__del__":
                show(found)

        sys.unraisablehook = hook

    atexit.register(ignore)


# --- records and batches --------------------------------------------------------------------------


Keep = Callable[[tf.Tensor], tf.Tensor]
Arrange = Callable[[tf.data.Dataset], tf.data.Dataset]

_COMMON_SEED = 0


def keeping(
    predicate: Callable[..., Any] | None,
    spec: Callable[[], Mapping[str, Any]],
    is_wanted: Keep | None = None,
    floats: Callable[[], Collection[str]] = tuple,
) -> Keep | None:
    """Return the function that selects serialised records; None if all are read.

    The user's ``predicate`` takes a dict of the features in ``spec``; ``floats`` are names for
    :func:`recordgen.reading.parsing.as_floats`. Both are called only if there is a predicate.
    """
    if predicate is None:
        return is_wanted
    parsed_as, with_gaps = dict(spec()), floats()

    def keep(record: tf.Tensor) -> tf.Tensor:
        parsed = tf.io.parse_single_example(record, parsed_as)
        is_chosen = predicate(as_floats(parsed, with_gaps))
        return is_chosen if is_wanted is None else is_wanted(record) & is_chosen

    return keep


def read_records(plan: ReadPlan, options: RecordOptions, keep: Keep | None) -> tf.data.Dataset:
    """Return one pass over the records (string []) of this worker that ``keep`` selects."""
    end_quietly()
    files = tf.data.Dataset.from_tensor_slices(slices_of(plan))
    # Workers that take turns must count in one order, but it may differ between epochs.
    takes_turns = plan.turn is not None
    if plan.shuffle_buffer and len(plan.files) > 1:
        # Shuffle files before interleaving: the buffer mixes only records that are read together.
        seed = _COMMON_SEED if takes_turns and options.seed is None else options.seed
        files = shuffled(files, len(plan.files), seed)
    read_shard = partial(read_piece, partial(read_file, plan), plan.generation)
    if plan.cycle_length == 1:
        records = files.flat_map(read_shard)
    else:
        # Interleave before shuffle: neighbours in the buffer then come from different files.
        records = files.interleave(
            read_shard,
            cycle_length=None if plan.cycle_length == AUTOTUNE else plan.cycle_length,
            block_length=plan.block_length,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=options.is_ordered or takes_turns,
        )
    if keep is not None:
        records = records.filter(keep)
    if plan.turn is not None:
        index, count = plan.turn
        records = records.shard(count, index)
    return records


def cached(dataset: tf.data.Dataset, plan: ReadPlan, options: RecordOptions) -> tf.data.Dataset:
    """Cache the elements for the next epochs, if the plan says so."""
    if plan.cache is None or plan.cache.stage == NOTHING:
        return dataset
    if not plan.cache.path:
        return dataset.cache()
    if options.predicate is not None:
        raise UsageError(
            f"cache={plan.cache.path!r}: the name of a cache file does not depend on the "
            f"predicate, so it could hold another selection; use cache='memory'"
        )
    path = f"{plan.cache.path}-{_cache_mark(plan, plan.cache, options)}"
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    size, free = plan.cache.bytes or 0, shutil.disk_usage(folder).free
    # Not checked in the plan: an existing cache has already taken its space.
    if size > free and not os.path.exists(f"{path}.index"):
        raise UsageError(
            f"cache={plan.cache.path!r}: {plan.cache} need more than the {free / 1e6:,.1f} MB that "
            f"are free there; use another disk, cache='memory' or a smaller cache_bytes"
        )
    return dataset.cache(path)


def _cache_mark(plan: ReadPlan, cache: CachePlan, options: RecordOptions) -> str:
    """Return eight hex digits that depend on the reading and the versions of its files."""
    # A cache keeps the order of its first reading.
    order = (bool(plan.shuffle_buffer), options.seed)
    parts: list[object] = [cache.stage, plan.pieces, plan.turn, plan.classes, order]
    parts += [(file, storage.version(file)) for file in plan.files]
    if isinstance(options, LabelOptions):
        parts.append(tuple(options.extras))
    if isinstance(options, ReadOptions) and cache.keeps_images:
        parts += [PIXELS_VERSION, options.image_size, options.resize, options.tuning.decoder]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


def repeated_batches(
    dataset: tf.data.Dataset,
    plan: ReadPlan,
    options: RecordOptions,
    arrange: Arrange | None = None,
) -> tf.data.Dataset:
    """Cache elements and shuffle them, if the plan says so, and repeat and batch them.

    Each epoch is whole, because it is shuffled before the next one begins; none ends with a short
    batch; and one iterator serves the whole training, so that nothing is torn down and restarted in
    between. ``arrange`` changes the order of the elements before they are batched.
    """
    whole = cached(dataset, plan, options)
    if plan.shuffle_buffer:
        whole = shuffled(whole, plan.shuffle_buffer, options.seed)
    if options.passes != 1:
        whole = whole.repeat(options.passes)
    if arrange is not None:
        whole = arrange(whole)
    return whole.batch(options.batch_size, drop_remainder=options.has_full_batches)


def batches(
    plan: ReadPlan,
    options: RecordOptions,
    keep: Keep | None,
    to_batch: Callable[..., Any],
    arrange: Arrange | None = None,
) -> tf.data.Dataset:
    """Return batches, each made by ``to_batch`` of selected records (string [batch])."""
    records = read_records(plan, options, keep)
    # Batch before parse: one vectorised call for all records.
    batched = repeated_batches(records, plan, options, arrange)
    return batched.map(to_batch, **parallel_calls(options))


def finished(
    dataset: tf.data.Dataset, plan: ReadPlan, options: RecordOptions, *, batched: bool = True
) -> tf.data.Dataset:
    """Apply the last stages: known length, prefetching, tf.data's options.

    ``dataset`` has batches; ``batched=False`` returns single examples.
    """
    dataset = dataset if batched else dataset.unbatch()
    if plan.examples is not None and options.passes is not None:
        # Keras warns of an early end if it does not know the number of batches.
        examples = plan.examples * options.passes
        elements = batches_of(examples, options) if batched else examples
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(elements))
    # Prefetch last: the next batches are made while the model works on this one.
    return dataset.prefetch(options.tuning.prefetch).with_options(_tf_options(options))


@dataclass(frozen=True)
class BatchReading:
    """A planned reading by :func:`batches`, which takes ``keep``, ``to_batch`` and ``arrange``."""

    plan: ReadPlan
    options: RecordOptions
    keep: Keep | None
    to_batch: Callable[..., Any]
    arrange: Arrange | None = None

    def dataset(self) -> tf.data.Dataset:
        """Return the dataset: all stages, in their order."""
        made = batches(self.plan, self.options, self.keep, self.to_batch, self.arrange)
        return finished(made, self.plan, self.options)


def parallel_calls(options: RecordOptions) -> dict[str, Any]:
    """Return the arguments of ``map`` for parallel calls.

    Between epochs, no batch may overtake another one: it would be in the wrong epoch.
    """
    return {
        "num_parallel_calls": options.tuning.num_parallel_calls,
        "deterministic": options.is_ordered or options.passes != 1,
    }


def batches_of(examples: int, options: RecordOptions) -> int:
    """Return the number of batches: 100 examples in batches of 32 → 4, or 3 full ones."""
    whole, rest = divmod(examples, options.batch_size)
    return whole + (rest > 0 and not options.tuning.drop_remainder)


def _tf_options(options: RecordOptions) -> tf.data.Options:
    found = tf.data.Options()
    found.deterministic = options.is_ordered
    # With tf.data's autotuner, we have seen the end of an iterator stall for half a second and
    # more.
    found.autotune.enabled = options.tuning.autotune
    # Many images are decoded at the same time: more threads for one image slow the others down.
    found.threading.max_intra_op_parallelism = 1
    if options.tuning.threads is not None:
        found.threading.private_threadpool_size = options.tuning.threads
    found.experimental_distribute.auto_shard_policy = _auto_shard_policy(options)
    return found


def _auto_shard_policy(options: RecordOptions) -> tf.data.experimental.AutoShardPolicy:
    """Return how tf.distribute may divide the dataset among workers."""
    policies = tf.data.experimental.AutoShardPolicy
    if options.shard[1] > 1:
        return policies.OFF  # the dataset is already one worker's share
    if options.is_ordered and (options.seed is not None or not options.shuffle):
        return policies.DATA  # all workers see one order, and each takes every n-th batch
    # If the workers' orders differ, every n-th batch would repeat some examples and miss others.
    # Divide by files, or fail if that is not possible.
    return policies.FILE
