"""What an argument's name says about its value. Words of many APIs, not the names of any one tool."""

from __future__ import annotations

import re

from luckrate_otel.provenance.tokens.fold import vocabulary

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_ID = vocabulary("""
    id ids uid uuid guid key keys ref reference no nr num number sku iban bic account isbn serial ticket order invoice
    reservation booking customer tracking handle slug zip postcode
""")
_TARGET = _ID | vocabulary("""
    to cc bcc recipient recipients receiver payee beneficiary email emails mail address addresses phone wallet
    url uri link links href endpoint webhook host domain site path paths file filename filepath folder dir directory
    destination dest target source command cmd script query sql user users username login owner member members
    participant participants attendee attendees collaborator collaborators channel repo repository branch bucket
    password passphrase secret ssh
""")
_CONTENT = vocabulary("""
    subject body text content contents message messages title description comment comments note notes summary reason
    caption html markdown prompt question answer reply
""")
_PROOF = vocabulary("otp pin captcha passcode tan nonce totp mfa")
_PROOF_CODES = frozenset({"verification", "security", "confirmation"})


def parts(name: str) -> tuple[str, ...]:
    """`order_id`, `orderId`, `ORDER-ID` → ("order", "id")."""
    return tuple(part.lower() for part in _CAMEL.split(name) if part)


def is_id(name: str) -> bool:
    own = parts(name)
    return bool(own) and own[-1] in _ID


def is_target(name: str) -> bool:
    """The argument says where an action goes, on what it acts or what it runs."""
    return any(part in _TARGET for part in parts(name))


def is_content(name: str) -> bool:
    own = parts(name)
    return bool(own) and own[-1] in _CONTENT


def is_proof(name: str) -> bool:
    """A one-time code: it confirms an action that other arguments direct."""
    own = parts(name)
    return any(part in _PROOF for part in own) or (own[-1:] == ("code",) and not _PROOF_CODES.isdisjoint(own))
