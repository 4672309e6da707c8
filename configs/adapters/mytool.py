"""An adapter to start from: a Python product that is asked over JSON Lines.

Copy it, and put your product in the place of `mytool`. The adapter runs inside the product's
checkout, at every commit that is measured, old ones included: so it lives here, not there, and it
should ask little of the product. Say `commit` and `loaded_from`, and coldrun proves that the
answers came from the checkout it names.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))  # The checkout comes before any installed copy.
PRODUCT = "mytool"


def say(message: dict[str, Any]) -> None:
    """Write one line of the protocol. Everything else belongs on stderr."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Greet, index once, then answer question by question until the input ends."""
    hello = json.loads(sys.stdin.readline())
    product = importlib.import_module(PRODUCT)
    began = time.monotonic()
    index = product.build_index(hello["corpus"])
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    say(
        {
            "type": "ready",
            "nonce": hello["nonce"],
            "name": PRODUCT,
            "commit": head.stdout.strip(),
            "loaded_from": product.__file__,
            "indexing_seconds": time.monotonic() - began,
        }
    )
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] != "question":
            break
        try:
            found = index.search(message["query"], hello["k"])
        except Exception as error:  # noqa: BLE001 (whatever the product raises is its failure)
            say({"type": "error", "id": message["id"], "message": repr(error)})
            continue
        items = [{"path": path, "score": score} for path, score in found]
        say({"type": "answer", "id": message["id"], "items": items})


if __name__ == "__main__":
    main()
