"""Hooks of schemathesis: what it cannot know of the API that it judges."""

import itertools
import os
import re

import schemathesis
from hypothesis import strategies as st

# JSON Schema says of these that they are such texts, not how to make one.
schemathesis.openapi.format(
    "uri",
    st.sampled_from(["https://app.example.com", "https://hooks.example.com/in?x=1", "https://logs.example.com/push/"]),
)
schemathesis.openapi.format("hostname", st.sampled_from(["login.shop.example.com", "auth.example.org"]))
schemathesis.openapi.format("email", st.sampled_from(["ada@example.com", "no-reply@shop.example.com"]))

numbers = itertools.count(1)
printable = re.compile(r"[ -~]{1,200}\Z")
entity_tag = re.compile(r'"[!#-~]*"\Z')
own = frozenset(os.environ["HOLDFAST_JUDGE_OWN"].split(","))
ends_own = frozenset(os.environ["HOLDFAST_JUDGE_ENDS_OWN"].split(","))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Each request has a key of its own: the answer to an earlier body says nothing of this one. Tags that match come of reads."""
    headers = case.headers or {}
    key, tag = headers.get("Idempotency-Key"), headers.get("If-Match")
    if isinstance(key, str) and printable.match(key):
        headers["Idempotency-Key"] = f"{key}.{next(numbers)}"
    if isinstance(tag, str) and entity_tag.match(tag):
        headers["If-Match"] = "*"
    # The judge's own credential lives to the end.
    if case.operation.definition.raw.get("operationId") in ends_own:
        for name, value in (case.path_parameters or {}).items():
            if value in own:
                case.path_parameters[name] = "00000000-0000-7000-8000-000000000000"
