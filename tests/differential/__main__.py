"""Compares this server with openstack-placement: the same random clouds, writes and queries give the same answers."""

import sys

from tests.differential.rounds import main

if __name__ == "__main__":
    sys.exit(main())
