"""Hooks of schemathesis: generators and rules that the OpenAPI document cannot express."""

import itertools
import os
import re

import schemathesis
from hypothesis import strategies as st

# JSON Schema names the formats of these texts, and has no generator for them.
schemathesis.openapi.format(
    "uri",
    st.sampled_from(["https://app.example.com", "https://hooks.example.com/in?x=1", "https://logs.example.com/push/"]),
)
schemathesis.openapi.format("hostname", st.sampled_from(["login.shop.example.com", "auth.example.org"]))
schemathesis.openapi.format("email", st.sampled_from(["ada@example.com", "no-reply@shop.example.com"]))

numbers = itertools.count(1)
printable = re.compile(r"[ -~]{1,200}\Z")
entity_tag = re.compile(r'"[!#-~]*"\Z')
own_ids = frozenset(os.environ["HOLDFAST_SCHEMATHESIS_OWN"].split(","))
revoking_operations = frozenset(os.environ["HOLDFAST_SCHEMATHESIS_ENDS_OWN"].split(","))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Makes keys unique and tags match.

    The stored response of an earlier body would hide the response to this one, and a valid entity tag comes from a read.
    """
    headers = case.headers or {}
    key, tag = headers.get("Idempotency-Key"), headers.get("If-Match")
    if isinstance(key, str) and printable.match(key):
        headers["Idempotency-Key"] = f"{key}.{next(numbers)}"
    if isinstance(tag, str) and entity_tag.match(tag):
        headers["If-Match"] = "*"
    # The run's own credential must stay valid until the end.
    if case.operation.definition.raw.get("operationId") in revoking_operations:
        for name, value in (case.path_parameters or {}).items():
            if value in own_ids:
                case.path_parameters[name] = "00000000-0000-7000-8000-000000000000"
