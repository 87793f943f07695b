import { expect, test } from "vitest";
import { missingScope, takeCode } from "./account.ts";

test("a code leaves the address and the history", () => {
  const replaced: string[] = [];
  const history: Pick<History, "replaceState"> = {
    replaceState(_data, _title, url) {
      replaced.push(String(url));
    },
  };
  const location = { hash: "#code=hfc_abc-_", pathname: "/console/services", search: "?q=1" };
  expect(takeCode(location, history)).toBe("hfc_abc-_");
  expect(replaced).toEqual(["/console/services?q=1"]);
  expect(takeCode({ ...location, hash: "#content" }, { replaceState: () => expect.unreachable() })).toBeUndefined();
});

test.each([
  [["services:read"], "services:read", undefined],
  [["services:*"], "services:write", undefined],
  [[], "signed-in", undefined],
  [["services:read"], "services:write", "Your role lacks the scope services:write."],
  [["service:*"], "services:write", "Your role lacks the scope services:write."],
])("with %j a call of %s is refused: %s", (scopes, scope, refusal) =>
  expect(missingScope(scopes, scope)).toBe(refusal),
);
