"""The demo's data set: circles, squares and triangles on backgrounds like photos out of focus.

Made by numpy alone from a seed: every image has its own generator, so each is the same whatever the
others are. Edges are exact to a fraction of a pixel, as shapes are signed distance functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

CLASS_NAMES = ("circle", "square", "triangle")

_HUES = (0.03, 0.6, 0.3)
"""Where each class's hues lie, as toys come in a colour: circles red to yellow, squares blue,
triangles green. A net that is trained for two minutes tells colours apart sooner than outlines."""

_HUE_SPREAD = 0.11

_VERSION = 2
"""Raised whenever the drawing changes, so that an older set is made anew."""

_JPEG_QUALITY = 90
_MAX_OVERLAP = 0.2
"""Share of the smaller of two boxes; a photo's objects hide one another as well."""
_PLACEMENT_TRIES = 40

Array = NDArray[np.float32]


@dataclass(frozen=True)
class ShapesSpec:
    """What to make.

    Attributes:
        num_train: images to train on.
        num_held_out: images to evaluate on.
        image_size: height and width in pixels.
        seed: of everything that is drawn at random.
    """

    num_train: int = 360
    num_held_out: int = 60
    image_size: int = 256
    seed: int = 7


class ShapesFiles(NamedTuple):
    """Where the set lies."""

    train: Path
    held_out: Path
    label_map: Path


class Box(NamedTuple):
    """In pixels: the first row and column within, and the first ones beyond."""

    ymin: int
    xmin: int
    ymax: int
    xmax: int


class Drawing(NamedTuple):
    """One image with its objects.

    image: [size, size, 3] uint8; labels count from 1 in the order of `CLASS_NAMES`.
    """

    image: NDArray[np.uint8]
    boxes: tuple[Box, ...]
    labels: tuple[int, ...]


def make_shapes(folder: Path, spec: ShapesSpec | None = None) -> ShapesFiles:
    """Writes the set into a folder; does nothing when the same set is there already.

    Args:
        folder: is made when missing.
        spec: what to make.
    """
    spec = spec or ShapesSpec()
    files = ShapesFiles(folder / "train.record", folder / "val.record", folder / "label_map.pbtxt")
    manifest = folder / "manifest.json"
    if manifest.exists() and manifest.read_text() == _manifest(files, spec):
        return files
    folder.mkdir(parents=True, exist_ok=True)
    manifest.unlink(missing_ok=True)
    files.label_map.write_text(_label_map())
    _write_records(files.train, range(spec.num_train), spec=spec)
    held_out = range(spec.num_train, spec.num_train + spec.num_held_out)
    _write_records(files.held_out, held_out, spec=spec)
    manifest.write_text(_manifest(files, spec))
    return files


def draw(index: int, *, image_size: int, seed: int) -> Drawing:
    """Draws the image of that number."""
    rng = np.random.default_rng([seed, index])
    canvas = _background(rng, image_size)
    boxes: list[Box] = []
    labels: list[int] = []
    for relative_size in _relative_sizes(rng):
        kind = int(rng.integers(len(CLASS_NAMES)))
        placed = _place(rng, kind, size=relative_size * image_size, boxes=boxes, side=image_size)
        if placed is None:
            continue
        canvas = _paint(rng, canvas, placed.distance, hue=_HUES[kind])
        boxes.append(placed.box)
        labels.append(kind + 1)
    canvas += np.float32(0.012) * rng.standard_normal(canvas.shape, np.float32)  # as of a sensor
    image = np.clip(canvas * 255.0 + 0.5, 0, 255).astype(np.uint8)
    return Drawing(image, tuple(boxes), tuple(labels))


class _Placed(NamedTuple):
    distance: Array
    """[size, size], in pixels: negative inside."""
    box: Box


def _relative_sizes(rng: np.random.Generator) -> list[float]:
    """Sides of one to four objects as a part of the image's; the more, the smaller."""
    count = int(rng.choice([1, 2, 3, 4], p=[0.3, 0.35, 0.25, 0.1]))
    largest = (0.6, 0.5, 0.42, 0.35)[count - 1]
    return sorted(rng.uniform(0.28, largest, count), reverse=True)


def _place(
    rng: np.random.Generator, kind: int, *, size: float, boxes: list[Box], side: int
) -> _Placed | None:
    """Finds a place with little overlap; None when the image is full."""
    for _ in range(_PLACEMENT_TRIES):
        centre = rng.uniform(0.5 * size, side - 0.5 * size, 2)
        angle = rng.uniform(0, 2 * np.pi)
        distance = _signed_distance(kind, centre=centre, size=size, angle=angle, side=side)
        box = _bounding_box(distance)
        inside = min(box) > 0 and max(box) < side
        if inside and all(_overlap(box, other) <= _MAX_OVERLAP for other in boxes):
            return _Placed(distance, box)
    return None


def _signed_distance(
    kind: int, *, centre: NDArray[np.float64], size: float, angle: float, side: int
) -> Array:
    """Distance of each pixel's centre to the shape's outline, negative inside.

    The shape's longest extent is about `size` at any angle.
    """
    pixels = np.arange(side, dtype=np.float32) + 0.5
    y, x = pixels[:, None] - np.float32(centre[0]), pixels[None, :] - np.float32(centre[1])
    cos, sin = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    across, along = cos * x + sin * y, cos * y - sin * x
    if CLASS_NAMES[kind] == "circle":
        return np.sqrt(across * across + along * along) - np.float32(0.5 * size)
    if CLASS_NAMES[kind] == "square":
        rounding = np.float32(0.04 * size)
        half = np.float32(0.4 * size) - rounding
        dx, dy = np.abs(across) - half, np.abs(along) - half
        outside = np.sqrt(np.maximum(dx, 0) ** 2 + np.maximum(dy, 0) ** 2)
        return outside + np.minimum(np.maximum(dx, dy), 0) - rounding
    return _triangle_distance(across, along, radius=np.float32(0.62 * size))


def _triangle_distance(x: Array, y: Array, *, radius: np.float32) -> Array:
    """Equilateral with rounded corners: the largest distance to its three sides, smoothed."""
    rounding = radius * np.float32(0.06)
    apothem = radius * np.float32(0.5)
    angles = np.array([0, 2, 4], np.float32) * np.float32(np.pi / 3)
    sides = [np.cos(a) * y + np.sin(a) * x - apothem for a in angles]
    return rounding * np.log(sum(np.exp(np.clip(s / rounding, -60, 60)) for s in sides))


def _bounding_box(distance: Array) -> Box:
    rows = np.flatnonzero((distance < 0).any(axis=1))
    columns = np.flatnonzero((distance < 0).any(axis=0))
    return Box(int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)


def _overlap(box: Box, other: Box) -> float:
    """Shared area over the smaller box's area."""
    height = min(box.ymax, other.ymax) - max(box.ymin, other.ymin)
    width = min(box.xmax, other.xmax) - max(box.xmin, other.xmin)
    areas = [(b.ymax - b.ymin) * (b.xmax - b.xmin) for b in (box, other)]
    return max(0, height) * max(0, width) / min(areas)


def _paint(rng: np.random.Generator, canvas: Array, distance: Array, *, hue: float) -> Array:
    """Lays a lit, slightly grained object with a soft shadow onto the canvas."""
    side = len(canvas)
    softness = side * rng.uniform(0.012, 0.03)
    shift = tuple(int(v) for v in rng.integers(1, max(2, side // 40), 2))
    shadow = _coverage(np.roll(distance, shift, axis=(0, 1)), softness)
    canvas = canvas * (1 - 0.45 * shadow[..., None])
    surroundings = canvas[np.abs(distance) < 0.06 * side].mean(axis=0)
    colour = _contrasting_colour(rng, surroundings, hue=hue)
    light = 1 + np.float32(rng.uniform(0.1, 0.28)) * _ramp(rng, side)
    grain = 1 + 0.08 * _noise(rng, side, octaves=(12, 40))
    surface = np.clip(colour * (light * grain)[..., None], 0, 1)
    cover = _coverage(distance, 0.8)[..., None]
    return canvas * (1 - cover) + surface * cover


def _coverage(distance: Array, softness: float) -> Array:
    """Part of each pixel that is inside: 1 deep inside, 0 far outside."""
    return np.clip(0.5 - distance / np.float32(2 * softness), 0, 1)


def _contrasting_colour(rng: np.random.Generator, surroundings: Array, *, hue: float) -> Array:
    """The one of several strong colours of about that hue that differs most from what is around."""
    hues = (hue + rng.uniform(-_HUE_SPREAD, _HUE_SPREAD, 5)) % 1
    saturations, values = rng.uniform(0.55, 0.95, 5), rng.uniform(0.35, 0.95, 5)
    colours = np.stack([_rgb(*hsv) for hsv in zip(hues, saturations, values, strict=True)])
    return colours[np.abs(colours - surroundings).sum(axis=1).argmax()]


def _rgb(hue: float, saturation: float, value: float) -> Array:
    wheel = np.abs(((hue + np.array([0, 2 / 3, 1 / 3])) % 1) * 6 - 3) - 1
    return (value * (1 - saturation + saturation * np.clip(wheel, 0, 1))).astype(np.float32)


def _background(rng: np.random.Generator, side: int) -> Array:
    """A blurred scene: two muted colours mixed by smooth noise, discs of light, uneven lighting."""
    hue = rng.uniform()
    first = _rgb(hue, rng.uniform(0.1, 0.45), rng.uniform(0.25, 0.6))
    second = _rgb(
        (hue + rng.uniform(-0.15, 0.15)) % 1, rng.uniform(0.1, 0.5), rng.uniform(0.4, 0.8)
    )
    clouds = 1.6 * _noise(rng, side, octaves=(3, 6, 12, 24)) + 0.8 * _ramp(rng, side)
    mix = 0.5 + 0.5 * np.tanh(clouds)
    canvas: Array = np.asarray(first + (second - first) * mix[..., None], np.float32)
    for _ in range(rng.integers(3, 9)):
        canvas = _add_disc_of_light(rng, canvas)
    lighting = 1 + 0.25 * _ramp(rng, side) + 0.08 * _noise(rng, side, octaves=(2, 5))
    return np.clip(canvas * lighting[..., None], 0, 1)


def _add_disc_of_light(rng: np.random.Generator, canvas: Array) -> Array:
    """A lamp or a leaf far out of focus: a pale disc with a wide soft edge."""
    side = len(canvas)
    centre, radius = rng.uniform(0, side, 2), rng.uniform(0.04, 0.22) * side
    pixels = np.arange(side, dtype=np.float32) + 0.5
    y, x = pixels[:, None] - np.float32(centre[0]), pixels[None, :] - np.float32(centre[1])
    distance = np.sqrt(y * y + x * x) - np.float32(radius)
    cover = _coverage(distance, radius * rng.uniform(0.5, 1.0))
    colour = _rgb(rng.uniform(), rng.uniform(0.05, 0.4), rng.uniform(0.3, 0.9))
    strength = np.float32(rng.uniform(0.15, 0.45))
    return canvas + (colour - canvas) * (strength * cover)[..., None]


def _ramp(rng: np.random.Generator, side: int) -> Array:
    """A plane from about -1 to 1 across the image, in any direction."""
    angle = rng.uniform(0, 2 * np.pi)
    line = np.linspace(-1, 1, side, dtype=np.float32)
    cos, sin = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    return cos * line[:, None] + sin * line[None, :]


def _noise(rng: np.random.Generator, side: int, *, octaves: tuple[int, ...]) -> Array:
    """Smooth noise about 0: random grids of so many cells a side, each half as strong as before."""
    total = np.zeros((side, side), np.float32)
    for number, cells in enumerate(octaves):
        grid = rng.standard_normal((cells + 1, cells + 1), np.float32)
        rows = _interpolated(grid, side)
        total += np.float32(0.5**number) * _interpolated(rows.T, side).T
    return total


def _interpolated(grid: Array, side: int) -> Array:
    """Stretches the first axis to `side` pixels, eased so that the grid's points don't show."""
    position = (np.arange(side, dtype=np.float32) + 0.5) * np.float32((len(grid) - 1) / side)
    cell = position.astype(int)
    part = (position - cell)[:, None]
    eased = part * part * (3 - 2 * part)
    return grid[cell] + (grid[cell + 1] - grid[cell]) * eased


def _write_records(path: Path, indices: range, *, spec: ShapesSpec) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for example in _examples(indices, spec=spec):
            writer.write(example.SerializeToString(deterministic=True))


def _examples(indices: range, *, spec: ShapesSpec) -> Iterator[tf.train.Example]:
    for index in indices:
        drawing = draw(index, image_size=spec.image_size, seed=spec.seed)
        encoded = tf.io.encode_jpeg(drawing.image, quality=_JPEG_QUALITY).numpy()
        yield _example(drawing, name=f"shapes-{index:04d}", encoded=encoded)


def _example(drawing: Drawing, *, name: str, encoded: bytes) -> tf.train.Example:
    height, width = drawing.image.shape[:2]
    corners = np.array(drawing.boxes, np.float32).reshape(-1, 4)
    corners /= np.array([height, width, height, width], np.float32)
    texts = [CLASS_NAMES[label - 1].encode() for label in drawing.labels]
    features = {
        "image/encoded": _bytes([encoded]),
        "image/format": _bytes([b"jpeg"]),
        "image/filename": _bytes([f"{name}.jpg".encode()]),
        "image/source_id": _bytes([name.encode()]),
        "image/height": _integers([height]),
        "image/width": _integers([width]),
        "image/object/class/text": _bytes(texts),
        "image/object/class/label": _integers(list(drawing.labels)),
    }
    for column, corner in enumerate(("ymin", "xmin", "ymax", "xmax")):
        values = tf.train.FloatList(value=corners[:, column])
        features[f"image/object/bbox/{corner}"] = tf.train.Feature(float_list=values)
    return tf.train.Example(features=tf.train.Features(feature=features))


def _bytes(values: list[bytes]) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _integers(values: list[int]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _label_map() -> str:
    items = (f'item {{\n  id: {n}\n  name: "{name}"\n}}\n' for n, name in enumerate(CLASS_NAMES, 1))
    return "\n".join(items)


def _manifest(files: ShapesFiles, spec: ShapesSpec) -> str:
    """What lies there, as text; differs when a file is missing or has another size."""
    sizes = {path.name: path.stat().st_size if path.exists() else None for path in files}
    return json.dumps({"version": _VERSION, **asdict(spec), "bytes": sizes}, indent=2) + "\n"
