"""Large answers, streamed while they are written and compressed if the client accepts it.

A small answer is sent as a whole, with its length. A large one starts before its end is written, and is never in memory
as a whole.
"""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from flask import Request, Response

from placement.tuning import give_memory_back

LARGE_BYTES = 1_000_000
GZIP = 16 + zlib.MAX_WBITS
LEVEL = 1
"""Takes 6 ms per megabyte of JSON and leaves a sixth of it; the default level takes 18 ms to save a fifth."""


def answer_in_pieces(request: Request, pieces: Iterable[bytes], media_type: str) -> Response:
    """Answer with text written piece by piece; writing must not fail once LARGE_BYTES are out."""
    left = iter(pieces)
    begun, size = [], 0
    for piece in left:
        begun.append(piece)
        size += len(piece)
        if size >= LARGE_BYTES:
            return _large(request, chain(begun, left), media_type)
    return Response(b"".join(begun), content_type=media_type)


def _large(request: Request, pieces: Iterator[bytes], media_type: str) -> Response:
    takes_gzip = request.accept_encodings["gzip"] > 0
    response = Response(_compressed(pieces) if takes_gzip else pieces, content_type=media_type)
    response.headers["vary"] = "accept-encoding"
    if takes_gzip:
        response.headers["content-encoding"] = "gzip"
    response.call_on_close(give_memory_back)
    return response


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
    for piece in pieces:
        if compressed := compressor.compress(piece):
            yield compressed
    yield compressor.flush()
