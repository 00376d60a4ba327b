"""The API of an application in process, for tests of the console that need a cloud."""

from flask import Flask

from tests.clouds import Call


def calls_of(app: Flask) -> Call:
    """Return the API of an application in the form that functions creating clouds expect."""
    client = app.test_client()

    def call(method: str, path: str, version: str, body: object = None) -> tuple[int, object]:
        headers = {"x-auth-token": "admin", "openstack-api-version": f"placement {version}"}
        response = client.open(path, method=method, headers=headers, json=body)
        return response.status_code, response.get_json(silent=True)

    return call
