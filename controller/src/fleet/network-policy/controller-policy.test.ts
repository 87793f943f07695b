import { expect, test } from "vitest";
import { controllerRulesOf } from "./controller-policy.ts";

test("machines may connect to every controller with an address, draining ones included", () => {
  const member = (id: string, address: string, draining = false) => ({ id, address, startedAt: 0, draining });
  const members = [
    member("one", "10.1.0.1:8444"),
    member("two", "[2001:db8::2]:9000", true),
    member("named", "controllers.example:8444"),
    member("starting", ""),
  ];
  expect(controllerRulesOf(members)).toEqual([
    { owner: { kind: "controller", id: "one" }, to: "10.1.0.1", port: 8444, from: ["0.0.0.0/0"] },
    { owner: { kind: "controller", id: "two" }, to: "2001:db8::2", port: 9000, from: ["::/0"] },
  ]);
});
