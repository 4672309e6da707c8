"""The panel of the null baseline: 117 tickets of a shop, in eight answer shapes, 30 repositories.

Nineteen tickets need the same three repositories, and no other ticket needs three: a sample that
takes the largest answers first is those nineteen and one more. Some tickets are too vague for
anybody; the others name what they are about in words that only a reader of the ticket can use.
"""

from __future__ import annotations

from typing import Any, NamedTuple

REPOSITORIES = (
    *("admin", "storefront", "storefront-legacy", "billing", "payments", "search"),
    *("accounts", "analytics", "api-gateway", "basket", "catalogue", "cms", "currency"),
    *("delivery", "discounts", "emails", "fraud", "images", "infrastructure", "inventory"),
    *("invoices", "loyalty", "mobile-app", "orders", "pricing", "recommendations", "returns"),
    *("reviews", "tax", "warehouse-robots"),
)

SEED = 4
"""With this seed the shape sample takes three tickets of the dominant shape, and two or three of
the others in such numbers that its constant answer has a recall of 55 %."""


class Topic(NamedTuple):
    """What some tickets are about, in how many of them, and the repositories to change."""

    words: str
    repositories: tuple[str, ...]
    tickets: int


TOPICS = (
    Topic("the new product page", ("admin", "storefront", "storefront-legacy"), 19),
    Topic("the page header", ("storefront",), 16),
    Topic("the printed catalogue export", ("storefront-legacy",), 13),
    Topic("the voucher editor", ("admin", "storefront"), 12),
    Topic("the monthly statement", ("billing", "storefront"), 9),
    Topic("the card terminal", ("payments",), 18),
    Topic("the typo tolerance", ("search",), 17),
    Topic("the release of last week", (), 13),
)

VAGUE = frozenset(
    f"SHOP-{number}"
    for number in (1006, 1012, 1045, 1058, 1073, 1078, 1085, 1087, 1093, 1115, 1116)
)
"""Tickets that say nothing: four of the sample by size, eight of the sample by shape."""

COMPLAINTS = ("breaks on Mondays", "is slow", "shows the wrong total", "needs a new label")


def list_tickets() -> list[dict[str, Any]]:
    """The rows of the panel's source file, topics mixed."""
    topics = [topic for topic in TOPICS for _ in range(topic.tickets)]
    rows = []
    for number, place in enumerate(sorted(range(len(topics)), key=lambda place: place * 35 % 117)):
        topic, ticket = topics[place], f"SHOP-{1000 + number}"
        subject = "it" if ticket in VAGUE else topic.words
        rows.append(
            {
                "id": ticket,
                "query": f"{ticket}: {subject} {COMPLAINTS[number % 4]}",
                "gold": list(topic.repositories),
            }
        )
    return rows
