"""Large answers: sent while they are written, and compressed where the client takes that.

A small answer is sent as a whole, with its length. Of a large one the first bytes are on their way before the last are
written, and it never stands in memory as a whole.
"""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from flask import Request, Response

from placement.tuning import give_memory_back

LARGE_BYTES = 1_000_000
GZIP = 16 + zlib.MAX_WBITS
LEVEL = 1
"""6 ms a megabyte of JSON, which becomes a sixth; the usual level takes three times as long for a fifth less."""


def answer_in_pieces(request: Request, pieces: Iterable[bytes], media_type: str) -> Response:
    """Answer with what is written piece by piece; nothing of it may fail once the first large piece is written."""
    rest = iter(pieces)
    begun, size = [], 0
    for piece in rest:
        begun.append(piece)
        size += len(piece)
        if size >= LARGE_BYTES:
            return _large(request, chain(begun, rest), media_type)
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
