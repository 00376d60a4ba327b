"""Which media types a client accepts."""

import re

from flask import Request
from werkzeug.datastructures import MIMEAccept

WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
MEDIA_RANGE = re.compile(rf"\s*({WORD}/{WORD}\s*(;.*)?)?")


def accepted_types(request: Request) -> MIMEAccept | None:
    """Return what a client accepts, or None if that is anything.

    As in openstack-placement, a header with an entry that names no media type, such as ``*`` or ``json``, is ignored.
    """
    accepted = request.accept_mimetypes
    if not accepted:
        return None
    is_well_formed = all(map(MEDIA_RANGE.fullmatch, request.headers["accept"].split(",")))
    return accepted if is_well_formed else None
