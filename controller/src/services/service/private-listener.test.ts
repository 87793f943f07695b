import { expect, test } from "vitest";
import { privateListenerFault, privateListenerOf, privatePortOf } from "./private-listener.ts";

test("the private listener is absent for engines without one", () => {
  expect(privateListenerOf({ databaseType: "postgresql", privateListener: true })).toBeUndefined();
  expect(privatePortOf({ databaseType: "postgresql", privateListener: true })).toBeUndefined();
});

test("a request for it is refused for engines without one, with the name of the field", () => {
  const detail = "postgresql has no private listener";
  expect(privateListenerFault("postgresql", true)).toMatchObject({ field: "private_listener", detail });
  for (const requested of [false, undefined]) expect(privateListenerFault("postgresql", requested)).toBeUndefined();
});
