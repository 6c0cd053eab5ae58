"""The review page in a real browser: every page, each role, a narrow screen, keys alone, and what is new."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.review.conftest import POLICY, TOKENS, Browser, Desk
from tests.review.conftest import desk as desk
from tests.review.conftest import served as served

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
PAGES = (
    "/",
    "/?show=granted",
    "/?show=answered",
    "/questions",
    "/sessions",
    "/sessions/night",
    "/files/a.txt",
    "/audit",
    "/audit/verify",
    "/policy",
    "/trash",
)


@pytest.fixture
def window(chromium: Any, served: Desk) -> Iterator[Any]:
    """A tab that keeps every error and every request that goes anywhere but to the server."""
    context = chromium.new_context(
        viewport={"width": 1200, "height": 800}, base_url=f"http://127.0.0.1:{served.port}"
    )
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(f"a dialog: {dialog.message}"))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    here = (f"http://127.0.0.1:{served.port}/", "data:")
    page.on("request", lambda one: None if one.url.startswith(here) else errors.append(one.url))
    yield page
    context.close()
    assert errors == []


def sign_in(page: Any, name: str = "ann") -> None:
    page.goto("/sign-in")
    page.fill("#token", TOKENS[name][1])
    page.keyboard.press("Enter")
    page.wait_for_selector("nav")


def go(page: Any, path: str) -> None:
    """To another page of the sign-in that the open page is of."""
    page.goto("/".join(page.url.split("/")[:5]) + path)


def busy(desk: Desk) -> str:
    desk.call("edit_file", path="a.txt", old_str="one", new_str="two")
    desk.call("delete", path="tmp/c.txt")
    return desk.ask("b.txt", description="no longer needed")


@pytest.mark.parametrize("name", ["ann", "dan", "lou"])
@pytest.mark.parametrize("width", [1200, 400])
def test_every_page_fits_and_is_accessible(window: Any, served: Desk, name: str, width: int) -> None:
    asked = busy(served)
    window.set_viewport_size({"width": width, "height": 800})
    sign_in(window, name)
    for path in (*PAGES, f"/approvals/{asked}"):
        go(window, path)
        assert window.locator("h1").count() == 1, path
        wide = window.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, (path, wide)
        found = axe.Axe().run(window).response["violations"]
        assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_are_told_apart(window: Any, served: Desk, scheme: str) -> None:
    asked = busy(served)
    window.emulate_media(color_scheme=scheme)
    sign_in(window)
    go(window, f"/approvals/{asked}")
    found = axe.Axe().run(window, options={"runOnly": ["color-contrast"]}).response["violations"]
    assert found == []


def test_what_is_new_comes_by_itself(window: Any, served: Desk) -> None:
    sign_in(window)
    assert window.locator(".row").count() == 0
    served.ask("b.txt")
    window.wait_for_selector(".row >> text=Delete file b.txt", timeout=10_000)
    assert window.title().startswith("(1) ")


def test_nothing_is_taken_from_under_the_hands(window: Any, served: Desk) -> None:
    asked = served.ask("b.txt")
    sign_in(window)
    go(window, f"/approvals/{asked}")
    window.fill("#reason", "because")
    served.ask("a.txt")
    window.wait_for_selector("#news:not([hidden])", timeout=10_000)
    assert window.input_value("#reason") == "because"


def test_with_keys_alone(window: Any, served: Desk) -> None:
    served.ask("b.txt")
    sign_in(window)

    def tab_to(text: str) -> None:
        for _ in range(60):
            window.keyboard.press("Tab")
            where = "a, button", "document.activeElement"
            if window.evaluate(f"{where[1]}.matches('{where[0]}') && {where[1]}.textContent") == text:
                return
        raise AssertionError(f"{text} cannot be reached")

    tab_to("Delete file b.txt")
    window.keyboard.press("Enter")
    window.wait_for_selector("text=Why this asks")
    window.locator("#answer button.lose").click(trial=True)  # waits until the page takes answers
    tab_to("Delete 1 file")
    window.keyboard.press("Enter")
    window.wait_for_selector("text=Approved once")
    assert served.call("delete", path="b.txt").ok


def test_without_javascript(chromium: Any, served: Desk) -> None:
    asked = busy(served)
    context = chromium.new_context(
        java_script_enabled=False,
        base_url=f"http://127.0.0.1:{served.port}",
        viewport={"width": 400, "height": 700},
    )
    page = context.new_page()
    sign_in(page)
    go(page, f"/approvals/{asked}")
    page.fill("#reason", "keep it")
    page.locator("#answer").get_by_role("button", name="Refuse").click()
    page.wait_for_selector("text=Refused:")
    context.close()
    assert "keep it" in served.call("delete", path="b.txt", description="no longer needed").content


def test_hostile_texts_run_nothing(window: Any, served: Desk) -> None:
    name = 'x"><img src=x onerror=alert(1)>\u202e.txt'
    (served.root / name).write_text("<script>alert(2)</script>" + "y" * 1_000_000)
    asked = served.ask(name, description="</p><script>alert(3)</script>")
    sign_in(window)
    go(window, f"/approvals/{asked}")
    assert window.locator("main script, main img").count() == 0
    assert window.locator("aside >> text=Delete 1 file").first.is_visible()
    go(window, "/audit")
    assert window.locator("main script, main img").count() == 0


def test_the_whole_story_with_an_agent_over_mcp(window: Any, served: Desk, tmp_path: Path) -> None:
    """An agent asks through MCP, a person approves in the browser, the agent's call goes on."""
    from tests.interop.conftest import environment
    from tests.review.agent import Agent

    assert POLICY
    with Agent(served.root, served.state, environment()) as agent:
        assert "Approval needed" in agent.call("delete", path="b.txt")
        sign_in(window)
        window.click("text=Delete file b.txt")
        window.click("button:has-text('Delete 1 file')")
        window.wait_for_url("**/")
        assert "Deleted" in agent.call("delete", path="b.txt")
        assert "Approval needed" in agent.call("delete", path="a.txt")
    assert not (served.root / "b.txt").exists()


def test_an_agent_over_mcp_that_is_refused_outdated_and_cut_off(window: Any, served: Desk) -> None:
    from tests.interop.conftest import environment
    from tests.review.agent import Agent

    def decide(title: str, *clicks: str) -> None:
        go(window, "/")
        window.click(f"text={title}")
        for click in clicks:
            window.click(click)

    sign_in(window)
    with Agent(served.root, served.state, environment()) as agent:
        agent.call("delete", path="b.txt")
        decide("Delete file b.txt")
        window.fill("#reason", "move it to .trash/")
        window.click("#answer button:has-text('Refuse')")
        window.wait_for_url("**/")
        assert "move it to .trash/" in agent.call("delete", path="b.txt")

        agent.call("delete", path="a.txt")
        (served.root / "a.txt").write_text("somebody else's work\n")
        decide("Delete file a.txt", "button:has-text('Delete 1 file')")
        window.wait_for_url("**/")
        assert "Approval needed" in agent.call("delete", path="a.txt"), "it is another plan by now"

        decide("Delete file a.txt", "text=Approve more than this change")
        window.click("button:has-text('this session (')")
        assert "This covers nearly every path of the workspace" in window.inner_text("main")
        window.click("text=Approve all of that")
        window.wait_for_url("**/")
        window.click("text=Take the approval back")
        window.wait_for_selector("text=revoked")
        assert "Approval needed" in agent.call("delete", path="a.txt")
    assert (served.root / "a.txt").exists()
    assert (served.root / "b.txt").exists()


class Listener(http.server.BaseHTTPRequestHandler):
    """Another program on another port of this machine, which keeps what browsers send."""

    received: list[str]

    def do_GET(self) -> None:
        self.received.append(f"{self.path}\n{self.headers}")
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        # From here everything of 127.0.0.1 is the same site, so that a cookie's SameSite keeps nothing off.
        self.wfile.write(b"<title>mine</title><img src=/again>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    received: list[str] = []
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Own", (Listener,), {"received": received})
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    thread.join()
    server.server_close()


def test_another_port_of_the_machine_receives_nothing_of_use(
    chromium: Any, served: Desk, listener: tuple[str, list[str]]
) -> None:
    asked = served.ask("b.txt")
    there, received = listener
    here = f"http://127.0.0.1:{served.port}"
    context = chromium.new_context(base_url=here)
    page = context.new_page()
    sign_in(page)
    mine = page.url
    cookie = {one["name"]: one["value"] for one in context.cookies(mine)}
    assert list(cookie) == [f"ringfence-{served.port}"]
    for path in ("/", "/sign-in", "/in/", f"/approvals/{asked}"):
        page.goto(there + path)
        page.goto(there + path)  # now from the same site
    page.evaluate(f"fetch({here!r} + '/approvals/{asked}', {{credentials: 'include', mode: 'no-cors'}})")
    page.goto(mine)
    page.evaluate(f"location.href = {there!r} + '/from-the-page'")
    page.wait_for_url("**/from-the-page")
    context.close()
    assert len(received) > 8
    secret = mine.split("/in/")[1].strip("/")
    assert not [one for one in received if "cookie" in one.lower() or secret in one]
    # And if it had the cookie by whatever way, it would still not be let in.
    thief = Browser(served.port, "; ".join(f"{name}={value}" for name, value in cookie.items()))
    assert "<h1>Sign in" in thief.get("/").text
    assert thief.send("POST", f"/approvals/{asked}", "decision=once").status == 401
    assert served.call("delete", path="b.txt").status == "approval_required"
