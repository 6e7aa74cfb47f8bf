"""Where one logs in. It is shown in place of any view, at the view's own address."""

from __future__ import annotations

from ixion.broker.web.console.views.layout import heading
from ixion.broker.web.console.views.markup import Safe, join, tag


def sign_in(by_password: bool, by_token: bool) -> Safe:
    return join(
        [
            heading("Sign in", "as a Kafka user of this broker"),
            form(
                tag("label", "user", field("user", "username", autofocus=True)),
                tag("label", "password", field("password", "current-password", kind="password")),
            )
            if by_password
            else None,
            tag("h2", "With a token") if by_password and by_token else None,
            form(tag("label", "bearer token", field("token", "off", kind="password"))) if by_token else None,
            tag("noscript", tag("p", "Signing in needs JavaScript.")),
        ]
    )


def form(*fields: Safe) -> Safe:
    # A POST: without the script, a password must not become a part of the address.
    return tag(
        "form",
        fields,
        tag("p", tag("button", "Sign in", type="submit"), tag("output", role="alert")),
        class_="doing signing",
        method="post",
        data_sign_in=True,
    )


def field(name: str, complete: str, kind: str = "text", *, autofocus: bool = False) -> Safe:
    return tag(
        "input",
        type=kind,
        name=name,
        required=True,
        autocomplete=complete,
        autocapitalize="none",
        spellcheck="false",
        autofocus=autofocus,
    )
