"""What all pages of the console have in common: access, headers, error pages, and links that lead somewhere."""

import gzip
import hashlib
import re
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import bcrypt
import pytest
from flask import Flask

import placement.ui
from placement.cli.demo import CLOUD, uuid_of
from placement.services.providers import create_provider
from placement.settings import UiSettings
from placement.ui.blueprint import PAGES
from tests.api.conftest import with_settings
from tests.ui.clouds import HELD
from tests.ui.visitor import Document, Visitor

PLAIN_PATHS = [f"/ui{page.path}" for page in PAGES if "<" not in page.path and page.endpoint != "project"]
STATIC = (
    "console.css",
    "frame.js",
    "icon.svg",
    "tree.js",
    "vendor/d3-hierarchy/d3-hierarchy.min.js",
    "vendor/htmx/htmx.min.js",
)
VENDOR = Path(placement.ui.__file__).parent / "static" / "vendor"


@pytest.fixture
def basic(app: Flask, tmp_path: Path) -> Flask:
    """An application that requires names and passwords: alice is an admin, bob has no role."""
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "htpasswd").write_text(f"alice:{hashed}\nbob:{hashed}\n")
    users = {"http_basic_file": str(tmp_path / "htpasswd"), "http_basic_user_roles": {"alice": ("admin",)}}
    return with_settings(app, auth_strategy="http_basic", **users).app


def test_every_page_opens_on_an_empty_cloud_and_has_a_name(visitor: Visitor):
    for path in PLAIN_PATHS:
        names = [tag for tag, _ in visitor.page(path).tags]
        assert (names.count("h1"), names.count("main"), names.count("title")) == (1, 1, 1), path


def test_nothing_but_this_servers_own_files_may_run(visitor: Visitor):
    for path in (*PLAIN_PATHS, "/ui/nowhere", "/ui/static/console.css"):
        assert visitor.open(path).headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        ), path


def test_pages_carry_no_script_or_style_of_their_own(visitor: Visitor):
    for tag, attributes in [pair for path in PLAIN_PATHS for pair in visitor.page(path).tags]:
        assert tag != "style"
        assert tag != "script" or attributes.get("src")
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_the_short_address_leads_to_the_overview(app: Flask):
    answer = Visitor(app, prefix="/placement").open("/ui")
    assert (answer.status_code, answer.location) == (308, "http://localhost/placement/ui/")


def test_a_page_that_is_not_there_is_told_in_a_page(visitor: Visitor):
    answer = visitor.open("/ui/no<script>where")
    assert answer.status_code == 404
    assert "no<script>where" in Document(answer.text).text


def test_pages_take_nothing_but_get_and_set_no_cookie(visitor: Visitor):
    for path in PLAIN_PATHS:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            refused = visitor.open(path, method=method)
            assert (refused.status_code, "GET" in refused.headers["allow"]) == (405, True), path
        assert visitor.open(path, method="HEAD").data == b""
        assert "set-cookie" not in visitor.open(path).headers


def test_pages_are_not_kept_by_browsers_and_have_no_microversion(visitor: Visitor):
    headers = visitor.open("/ui/", headers={"openstack-api-version": "placement 9.99"}).headers
    assert headers["cache-control"] == "no-store"
    assert "openstack-api-version" not in headers


def test_files_are_served_to_anybody(basic: Flask):
    for name in STATIC:
        assert Visitor(basic).open(f"/ui/static/{name}").status_code == 200, name


def test_browsers_keep_files_until_they_change(visitor: Visitor):
    """The address contains a digest of the content; a server that was upgraded earlier uses another digest."""
    files = [link for link in visitor.page("/ui/").links() if "/static/" in link]
    assert len(files) >= 3
    for link in files:
        answer = visitor.open(link)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable", link
        packed = visitor.open(link, headers={"accept-encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.data) == answer.data
        digest, name = link.removeprefix("/ui/static/").split("/", 1)
        assert hashlib.sha256(answer.data).hexdigest().startswith(digest)
        for other in (f"/ui/static/{name}", f"/ui/static/{'0' * 16}/{name}"):
            plain = visitor.open(other)
            assert (plain.data, plain.headers["cache-control"]) == (answer.data, "no-cache")
            assert visitor.open(other, headers={"if-none-match": plain.headers["etag"]}).status_code == 304


def test_what_others_wrote_is_what_they_published_and_has_its_licence():
    told = (VENDOR / "README.md").read_text()
    files = [path for path in VENDOR.rglob("*") if path.suffix in (".js", ".css")]
    assert files
    for path in files:
        row = next(line for line in told.splitlines() if f"`{path.relative_to(VENDOR)}`" in line)
        assert hashlib.sha256(path.read_bytes()).hexdigest() in row
        assert (path.parent / "LICENSE").read_text()


def test_pages_are_packed_for_browsers_that_take_that(visitor: Visitor):
    for path in ("/ui/search", "/ui/consumers?format=csv"):
        plain, packed = visitor.open(path), visitor.open(path, headers={"accept-encoding": "gzip"})
        assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
        assert gzip.decompress(packed.data)[:200] == plain.data[:200]


def test_only_files_below_static_are_served(visitor: Visitor):
    for path in ("../page.py", "%2e%2e/page.py", "..%2fpage.py", "vendor", ""):
        assert visitor.open(f"/ui/static/{path}").status_code == 404, path


def test_the_console_can_be_switched_off(app: Flask):
    off = with_settings(app, ui=UiSettings(enabled=False)).app
    assert Visitor(off, headers={"x-auth-token": "admin"}).open("/ui/").status_code == 404
    assert Visitor(off).open("/ui/").status_code == 401


def test_a_page_tells_its_region_its_visitor_and_its_time(app: Flask):
    app = with_settings(app, ui=UiSettings(title="eu-west-1 <b>", colour="#b3261e")).app
    page = Visitor(app, headers={"x-auth-token": "alice:blue", "x-roles": "admin,reader"}).page("/ui/")
    assert "Overview · eu-west-1 <b> · Placement" in page.text
    assert "alice in project blue as" in page.text
    assert re.search(r"As of \d\d:\d\d:\d\d UTC", page.text)
    assert "#b3261e" in [tag.get("fill") for name, tag in page.tags if name == "rect"]
    refused = Visitor(app, headers={"x-auth-token": "alice:blue"}).open("/ui/providers")
    assert refused.status_code == 403
    assert "As of" not in refused.text


@pytest.mark.parametrize("colour", ["red; } body {", "url(//evil)", "#12345", '"><script>'])
def test_a_colour_that_is_none_stops_the_start(colour: str):
    with pytest.raises(ValueError, match="colour must be like"):
        UiSettings(colour=colour)


def test_pages_follow_the_journal_of_those_who_may_read_it(app: Flask):
    followed = {"accept": "text/event-stream"}
    admin = Visitor(app, headers={"x-auth-token": "alice:blue", "x-roles": "admin"})
    reader = Visitor(app, headers={"x-auth-token": "bob:blue", "x-roles": "reader"})
    (path,) = admin.page("/ui/").links("data-live")
    stream = admin.open("/ui/live?since=2999-01-01", headers=admin.headers | followed)
    assert (stream.status_code, stream.mimetype) == (200, "text/event-stream")
    assert "data:" not in stream.text
    create_provider(app.extensions["placement"].database, uuid=uuid_of("host0"), name="host0")
    position = re.search("^id: (.+)$", stream.text, re.MULTILINE)
    news = admin.open(path, headers=admin.headers | followed | {"last-event-id": position[1]}).text
    assert '"entries":[]' in news
    assert "host0" not in news
    late = admin.open(path, headers=admin.headers | followed).text
    assert "data:" in late, "what changed while the page was on its way"
    assert reader.page("/ui/project?id=blue").links("data-live") == []
    assert reader.open(path, headers=reader.headers | followed).status_code == 403


def test_who_may_not_ask_the_api_may_not_look_either(app: Flask):
    nobody = Visitor(app, headers={"x-auth-token": "somebody:somewhere"})
    for path in PLAIN_PATHS:
        answer = nobody.open(path)
        assert answer.status_code == 403, path
        page = Document(answer.text)
        assert "Policy does not allow placement:" in page.text
        assert [link for link in page.links("href") if "static" not in link] == ["#main", "/ui/"]


def test_under_noauth2_a_visitor_is_the_admin_for_the_console_alone(visitor: Visitor):
    assert visitor.open("/ui/").status_code == 200
    assert visitor.open("/resource_providers").status_code == 401


HOSTS = {
    "localhost:8778": 200,
    "127.0.0.1:8778": 200,
    "[::1]:8778": 200,
    "evil.example:8778": 403,
    "127.0.0.1.evil.example": 403,
    "10.0.0.7:8778": 403,
    "[": 403,
}


def test_where_nothing_is_configured_the_console_answers_to_this_machines_names_only(app: Flask):
    """Otherwise a foreign page could read it through the visitor's browser, by a name that resolves to it."""
    implicit = with_settings(app, auth_is_implicit=True).app
    assert {host: Visitor(implicit, headers={"host": host}).open("/ui/").status_code for host in HOSTS} == HOSTS


def test_with_http_basic_the_browser_asks_for_a_name_and_a_password(basic: Flask):
    answer = Visitor(basic).open("/ui/")
    assert (answer.status_code, answer.mimetype) == (401, "text/html")
    assert answer.headers["www-authenticate"].startswith("Basic ")
    logins = {("alice", "secret"): 200, ("bob", "secret"): 403, ("alice", "wrong"): 401}
    assert {login: Visitor(basic).open("/ui/", auth=login).status_code for login in logins} == logins


@pytest.mark.each_database
@pytest.mark.parametrize("prefix", ["", pytest.param("/placement", marks=pytest.mark.any_database)])
def test_every_page_that_links_lead_to_is_there(app: Flask, demo: None, prefix: str):
    visitor = Visitor(app, prefix=prefix)
    waiting, seen = [f"{prefix}/ui/"], set[str]()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = visitor.open(address.removeprefix(prefix))
        assert answer.status_code == 200, address
        if answer.mimetype == "text/html":
            waiting += [to for link in Document(answer.text).links() if (to := _target(address, link)) not in seen]
    assert all(address.startswith(f"{prefix}/ui/") for address in seen)
    providers = {f"{prefix}/ui/providers/{provider.uuid}" for provider in CLOUD}
    consumers = {f"{prefix}/ui/consumers/{uuid_of(name)}" for name in HELD}
    assert providers | consumers <= seen


def _target(address: str, link: str) -> str:
    return urldefrag(urljoin(address, link)).url
