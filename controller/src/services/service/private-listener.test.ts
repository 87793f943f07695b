import { expect, test } from "vitest";
import { privateListenerFault, privateListenerOf, privatePortOf } from "./private-listener.ts";

test("the private listener is disabled by default, and absent for engines without one", () => {
  expect(privateListenerOf({ databaseType: "kafka" })).toBe(false);
  expect(privateListenerOf({ databaseType: "postgresql", privateListener: true })).toBeUndefined();
  expect(privatePortOf({ databaseType: "kafka" })).toBeUndefined();
  expect(privatePortOf({ databaseType: "kafka", privateListener: true })).toBe(9095);
});

test("a request for it is refused for engines without one, with the name of the field", () => {
  const detail = "postgresql has no private listener";
  expect(privateListenerFault("postgresql", true)).toMatchObject({ field: "private_listener", detail });
  for (const requested of [false, undefined]) expect(privateListenerFault("postgresql", requested)).toBeUndefined();
  expect(privateListenerFault("kafka", true)).toBeUndefined();
});
