"""Bits that flip in stored objects."""

from tests.crash.plain_records import is_part, parsed

_RATE = 0.005


class Damages:
    """Flips bits of checkpoints on the line, as long as another one stays sound.

    Attributes:
        number: how many objects are still to be damaged.
    """

    def __init__(self, random, backend, witness, *, number):
        self._random = random
        self._backend = backend
        self._witness = witness
        self.number = number

    def strike(self):
        """At a random one of the calls, if it is not yet enough."""
        if self.number and self._random.random() < _RATE:
            sound = sorted(self._witness.sound())
            if len(sound) > 1:
                self.number -= 1
                self._flip_bit_of(self._random.choice(sound))

    def _flip_bit_of(self, checkpoint):
        objects = self._witness.records.objects
        parts = [n for n in sorted(objects) if parsed(n)[0] == checkpoint and is_part(parsed(n)[1])]
        name = self._random.choice(parts)
        data = bytearray(objects[name])
        data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        self._backend.damage(name, bytes(data))
        self._witness.damages(name, bytes(data))
