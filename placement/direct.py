"""An in-process client of a placement service, without a network, for tests and tools.

Module path and interface are openstack-placement's. Requires keystoneauth1 and wsgi-intercept.
"""

from functools import cached_property
from typing import Any
from uuid import uuid4

import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from wsgi_intercept.interceptor import RequestsInterceptor

from placement.app import create_app
from placement.settings.loading import register_options, settings_from

TOKEN = "admin"  # noqa: S105 - the token noauth2 accepts for the administrator


class PlacementDirect(RequestsInterceptor):  # type: ignore[misc]
    """A context manager that runs a service configured by an oslo.config object and returns a keystoneauth1 Adapter.

        with PlacementDirect(conf, latest_microversion=True) as client:
            client.get("/resource_providers")

    Args of the constructor: ``conf`` names the database; with ``latest_microversion``, requests without a microversion
    are served at the newest instead of the oldest.
    """

    def __init__(self, conf: Any, latest_microversion: bool = False) -> None:  # noqa: FBT001, FBT002
        register_options(conf)
        conf.set_override("auth_strategy", "noauth2", group="api")
        self._conf = conf
        headers = {"OpenStack-API-Version": "placement latest"} if latest_microversion else {}
        endpoint = f"http://{uuid4()}/placement"
        session = Session(auth=Token(endpoint, TOKEN), session=requests.Session(), additional_headers=headers)
        self.adapter = Adapter(session, service_type="placement", raise_exc=False)
        super().__init__(lambda: self._application, url=endpoint)

    @cached_property
    def _application(self) -> Any:
        return create_app(settings_from(self._conf))

    def __enter__(self) -> Adapter:
        """Start serving."""
        super().__enter__()
        return self.adapter

    def __exit__(self, *exception: object) -> None:
        """Stop serving and close the database connections."""
        super().__exit__(*exception)
        if "_application" in self.__dict__:
            self._application.extensions["placement"].database.dispose()
