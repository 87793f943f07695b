import { expect, test } from "vitest";
import { missingScope, setUpLink, takeCode, takeSetUp } from "./account.ts";

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

test("a token for the first password leaves the address and the history", () => {
  const replaced: unknown[] = [];
  const history: Pick<History, "replaceState"> = { replaceState: (...given) => replaced.push(given[2]) };
  const setUp = { username: "a b&c", token: "t+/=" };
  const { hash, pathname, search } = new URL(setUpLink(setUp));
  expect([pathname, search]).toEqual(["/console/", ""]);
  expect(takeSetUp({ hash, pathname, search }, history)).toEqual(setUp);
  expect(replaced).toEqual(["/console/"]);
  expect(
    takeSetUp({ hash: "#code=a", pathname, search }, { replaceState: () => expect.unreachable() }),
  ).toBeUndefined();
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
