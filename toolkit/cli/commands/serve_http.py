"""`serve http`: sessions behind HTTP, from a command's options to a server that has ended."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ringfence.toolkit.cli.agent_option import mention_unknown
from ringfence.toolkit.cli.approval_prompt import whoami
from ringfence.toolkit.cli.context import open_as, open_for, open_session, root_of, source_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.extras import install, is_installed

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from starlette.routing import Route

    from ringfence.toolkit.http.session_pool import SessionPool
    from ringfence.toolkit.http.tokens import Tokens
    from ringfence.toolkit.review.accounts import People
    from ringfence.toolkit.review.middleware import Proxy
    from ringfence.toolkit.session.session import Session

    Routes = Callable[[SessionPool], tuple[list[Route], Callable[[], None]]]

ANYWHERE = ("0.0.0.0", "::", "")


def http(arguments: argparse.Namespace, screen: Screen) -> int:
    """Serve calls, decisions and approvals until a signal ends it."""
    _check_installed()
    from ringfence.toolkit.http.app import calling

    def routes(pool: SessionPool) -> tuple[list[Route], Callable[[], None]]:
        return calling(pool), lambda: None

    return _serve(arguments, screen, routes, "")


def mcp(arguments: argparse.Namespace, screen: Screen) -> int:
    """Serve MCP clients over streamable HTTP until a signal ends it."""
    _check_installed()
    from ringfence.toolkit.http.mcp_endpoint import Endpoint

    ask = arguments.ask or "queue"

    def routes(pool: SessionPool) -> tuple[list[Route], Callable[[], None]]:
        endpoint = Endpoint(pool, ask, answers=arguments.answers, prefix=arguments.prefix)
        return endpoint.routes(), endpoint.end

    return _serve(arguments, screen, routes, "/mcp")


def _serve(arguments: argparse.Namespace, screen: Screen, routes: Routes, path: str) -> int:
    from ringfence.toolkit.http.app import build
    from ringfence.toolkit.http.metrics import Metrics
    from ringfence.toolkit.http.middleware import Limits, hosts_of
    from ringfence.toolkit.http.server import serve
    from ringfence.toolkit.http.session_pool import SessionPool

    tokens = tokens_of(arguments)
    arguments.ask = "deny" if arguments.ask == "deny" else "queue"
    limits = Limits(
        hosts=hosts_of(arguments.host, arguments.allow_host),
        origins=frozenset(arguments.allow_origin),
        body=arguments.max_body,
        at_once=arguments.max_requests,
        seconds=arguments.read_timeout,
    )
    listening = _bind(arguments)

    def opened(agent: str, session: str | None) -> Session:
        arguments.agent, arguments.session = agent, session
        return open_session(arguments, screen)

    try:
        pool = SessionPool(opened, Metrics())
    except BaseException:
        listening.close()
        raise
    mention_unknown(pool.approver.policy, sorted({caller.name for caller in tokens.agents}), screen)
    if arguments.landlock:
        from ringfence.toolkit.cli.process_confinement import confine

        confine(pool.approver, arguments, screen)
    address = _address(listening)
    made, ending = routes(pool)
    app = build(pool, tokens, limits, made)

    def ready() -> None:
        screen.note(f"serving on {address}{path}")

    serve(app, listening, ready, ending, seconds=arguments.read_timeout)
    return DONE


def review(arguments: argparse.Namespace, screen: Screen) -> int:
    """Serve the web page on which people look and decide, until a signal ends it."""
    _check_installed("review")
    from ringfence.toolkit.http.middleware import Limits, hosts_of
    from ringfence.toolkit.http.server import serve
    from ringfence.toolkit.review.accounts import SignIns
    from ringfence.toolkit.review.app import build
    from ringfence.toolkit.review.context import PageContext

    people, token = _people(arguments)
    proxy = _proxy(arguments)
    listening = _bind(arguments)

    def act_as(agent: str, name: str | None) -> Session:
        return open_as(arguments, agent, name)

    def mine(name: str) -> Session:
        return open_for(arguments, f"person:{name}")

    try:
        source = source_of(arguments, root_of(arguments)[0])
        context = PageContext(act_as("default", None), act_as, mine, people, SignIns(), source)
    except BaseException:
        listening.close()
        raise
    hosts = hosts_of(arguments.host, arguments.allow_host)
    origins = frozenset(arguments.allow_origin)
    app = build(context, Limits(hosts=hosts, origins=origins, seconds=arguments.read_timeout), proxy)
    address = _address(listening)

    def ready() -> None:
        screen.note(f"serving on {address}")
        if token is not None:
            screen.note(f"sign in with the token {token}")

    def stopping() -> None:
        context.closing = True

    serve(app, listening, ready, stopping, seconds=arguments.read_timeout)
    return DONE


def _people(arguments: argparse.Namespace) -> tuple[People, str | None]:
    """Who may come in; without a list the one who reads what is printed at the start."""
    import secrets

    from ringfence.toolkit.http.middleware import LOOPBACK
    from ringfence.toolkit.http.tokens import TokensError, read_private
    from ringfence.toolkit.review.accounts import one_person, read

    if arguments.people is None:
        if arguments.user_header is not None:
            raise UsageError("--user-header: give the roles with --people FILE")
        if arguments.host.strip("[]") not in LOOPBACK:
            raise UsageError(f"--host {arguments.host}: give the accounts with --people FILE")
        token = secrets.token_urlsafe(24)
        return one_person(whoami(), token), token
    try:
        return read(read_private(arguments.people)), None
    except TokensError as error:
        raise UsageError(f"--people {arguments.people}: {error}") from None


def _proxy(arguments: argparse.Namespace) -> Proxy | None:
    """Who may say who somebody is: only a proxy that proves itself."""
    from ringfence.toolkit.http.tokens import TokensError, check_token, digest_of, read_private
    from ringfence.toolkit.review.middleware import PROXY_HEADER, Proxy

    if arguments.user_header is None and arguments.proxy_secret is None:
        return None
    if arguments.user_header is None:
        raise UsageError("--proxy-secret: give the header of the proxy with --user-header NAME")
    if arguments.proxy_secret is None:
        raise UsageError(
            "--user-header: every user of this machine could send it; give --proxy-secret FILE, with what the"
            f" proxy sends in {PROXY_HEADER}"
        )
    try:
        secret = read_private(arguments.proxy_secret).strip()
        check_token(secret)
    except TokensError as error:
        raise UsageError(f"--proxy-secret {arguments.proxy_secret}: {error}") from None
    return Proxy(arguments.user_header, digest_of(secret))


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def tokens_of(arguments: argparse.Namespace) -> Tokens:
    """Who may call. Without a file of tokens only this machine can, as one agent."""
    from ringfence.toolkit.http.middleware import LOOPBACK
    from ringfence.toolkit.http.tokens import TokensError, read, without_tokens

    if arguments.tokens is not None:
        try:
            return read(arguments.tokens)
        except TokensError as error:
            raise UsageError(f"--tokens {error}") from None
    if arguments.host.strip("[]") not in LOOPBACK:
        raise UsageError(f"--host {arguments.host}: callers need tokens; give --tokens FILE")
    return without_tokens(arguments.agent, arguments.session)


def _bind(arguments: argparse.Namespace) -> socket.socket:
    from ringfence.toolkit.http.server import bind

    if arguments.host in ANYWHERE and not arguments.allow_host:
        raise UsageError(f"--host {arguments.host}: give the server's host name with --allow-host NAME")
    try:
        return bind(arguments.host, arguments.port)
    except OSError as error:
        raise UsageError(f"--host {arguments.host} --port {arguments.port}: {error.strerror}") from None


def _check_installed(extra: str = "serve") -> None:
    if not is_installed(extra):
        raise UsageError(f"serving over HTTP needs more packages: {install(extra)}")
