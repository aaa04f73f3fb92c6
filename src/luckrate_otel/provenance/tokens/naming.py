"""What an argument's name says about its value. Words of many APIs, not the names of any one tool."""

from __future__ import annotations

import re

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_ID = frozenset(
    "id ids uid uuid guid key keys ref reference no nr num number sku iban bic account isbn serial ticket order invoice"
    " reservation booking customer tracking handle slug".split()
)
_TARGET = _ID | frozenset(
    "to cc bcc recipient recipients receiver payee beneficiary email emails mail address addresses phone url uri link links href"
    " endpoint webhook host domain site path paths file filename filepath folder dir directory destination dest target source"
    " command cmd script query sql code_to_run user users username login owner member members participant participants"
    " attendee attendees collaborator collaborators channel repo repository branch bucket password passphrase secret"
    " ssh token_to_add name_to_add wallet".split()
)
_CONTENT = frozenset(
    "subject body text content contents message messages title description comment comments note notes summary reason"
    " caption html markdown prompt question answer reply".split()
)
_PROOF = frozenset("otp pin captcha passcode tan nonce totp mfa".split())
_COMMAND = frozenset("command cmd script sql shell bash code query".split())


def parts(name: str) -> tuple[str, ...]:
    """`order_id`, `orderId`, `ORDER-ID` → ("order", "id")."""
    return tuple(part.lower() for part in _CAMEL.split(name) if part)


def is_id(name: str) -> bool:
    own = parts(name)
    return bool(own) and own[-1] in _ID


def is_target(name: str) -> bool:
    return any(part in _TARGET for part in parts(name))


def is_content(name: str) -> bool:
    own = parts(name)
    return bool(own) and own[-1] in _CONTENT


def is_proof(name: str) -> bool:
    """A one-time code: it confirms an action that other arguments direct."""
    own = parts(name)
    return any(part in _PROOF for part in own) or own[-2:] in (
        ("verification", "code"),
        ("security", "code"),
        ("confirmation", "code"),
    )
